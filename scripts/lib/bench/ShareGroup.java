// Reads a topic with a share group of Kafka, in no order, and waits for each record as many microseconds as its value
// says. Arguments and standard input are those of ParallelConsumer.java. A consumer polls up to ten records, and polls
// again once all of them are done; there are as many consumers as the concurrency needs.

import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

class ShareGroup {
    private static final int RECORDS_A_POLL = 10;

    public static void main(String[] args) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] run = line.split(" ");
            String group = run.length > 1 ? run[1] : "bench-" + UUID.randomUUID();
            try (OutputStream done = run.length > 1 ? new FileOutputStream(run[2]) : OutputStream.nullOutputStream()) {
                int records = run.length > 1 ? Integer.MAX_VALUE : Integer.parseInt(args[2]);
                System.out.println(seconds(args[0], args[1], group, records, Integer.parseInt(run[0]), done));
            }
        }
    }

    private static double seconds(
            String bootstrap, String topic, String group, int records, int concurrency, OutputStream done)
            throws Exception {
        startAtTheBeginning(bootstrap, group);
        AtomicInteger left = new AtomicInteger(records);
        AtomicLong began = new AtomicLong();
        AtomicLong ended = new AtomicLong();
        List<Thread> consumers = new ArrayList<>();
        ExecutorService workers = Executors.newFixedThreadPool(concurrency);
        for (int n = 0; n < Math.max(1, concurrency / RECORDS_A_POLL); n++) {
            consumers.add(new Thread(() -> {
                try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(Map.of(
                    "bootstrap.servers", bootstrap,
                    "group.id", group,
                    "max.poll.records", String.valueOf(RECORDS_A_POLL),
                    "share.acquire.mode", "record_limit",
                    "key.deserializer", ByteArrayDeserializer.class.getName(),
                    "value.deserializer", ByteArrayDeserializer.class.getName()))) {
                    consumer.subscribe(List.of(topic));
                    while (left.get() > 0) {
                        List<Callable<Void>> work = new ArrayList<>();
                        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                            began.compareAndSet(0, System.nanoTime());
                            work.add(() -> {
                                TimeUnit.MICROSECONDS.sleep(Long.parseLong(new String(record.value())));
                                done.write((record.offset() + "\n").getBytes());
                                ended.accumulateAndGet(System.nanoTime(), Math::max);
                                left.decrementAndGet();
                                return null;
                            });
                        }
                        workers.invokeAll(work);  // the next poll acknowledges them
                    }
                } catch (InterruptedException stopped) {
                    Thread.currentThread().interrupt();
                }
            }));
        }
        consumers.forEach(Thread::start);
        for (Thread each : consumers) {
            each.join();
        }
        workers.shutdown();
        return (ended.get() - began.get()) / 1e9;
    }

    private static void startAtTheBeginning(String bootstrap, String group) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
            ConfigEntry earliest = new ConfigEntry("share.auto.offset.reset", "earliest");
            admin.incrementalAlterConfigs(
                Map.of(resource, List.of(new AlterConfigOp(earliest, AlterConfigOp.OpType.SET)))).all().get();
        }
    }
}

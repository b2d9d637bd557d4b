// The other side of P12: reads a topic with parallel-consumer in KEY order, waiting for each record as long as its
// value says. For each line on standard input (a concurrency) it reads all of it once and prints the seconds from the
// first record that the function receives: not those of joining a group.

import io.confluent.parallelconsumer.ParallelConsumerOptions;
import io.confluent.parallelconsumer.ParallelConsumerOptions.ProcessingOrder;
import io.confluent.parallelconsumer.ParallelStreamProcessor;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

class WaitingConsumer {
    public static void main(String[] args) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println(seconds(args[0], args[1], Integer.parseInt(args[2]), Integer.parseInt(line)));
        }
    }

    private static double seconds(String bootstrap, String topic, int records, int concurrency) throws Exception {
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(Map.of(
            "bootstrap.servers", bootstrap,
            "group.id", "bench-" + UUID.randomUUID(),
            "auto.offset.reset", "earliest",
            "enable.auto.commit", "false",
            "max.poll.records", "50000",
            "key.deserializer", ByteArrayDeserializer.class.getName(),
            "value.deserializer", ByteArrayDeserializer.class.getName()));
        ParallelStreamProcessor<byte[], byte[]> processor = ParallelStreamProcessor.createEosStreamProcessor(
            ParallelConsumerOptions.<byte[], byte[]>builder()
                .consumer(consumer)
                .ordering(ProcessingOrder.KEY)
                .maxConcurrency(concurrency)
                .build());
        CountDownLatch left = new CountDownLatch(records);
        AtomicLong began = new AtomicLong();
        processor.subscribe(List.of(topic));
        processor.poll(context -> {
            began.compareAndSet(0, System.nanoTime());
            long micros = Long.parseLong(new String(context.value()));
            try {
                TimeUnit.MICROSECONDS.sleep(micros);
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
            left.countDown();
        });
        left.await();
        double seconds = (System.nanoTime() - began.get()) / 1e9;
        processor.close();
        return seconds;
    }
}

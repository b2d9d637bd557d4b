// Reads a topic with parallel-consumer in KEY order, and waits for each record as many microseconds as its value says.
// Arguments: bootstrap, topic, number of records. A line on standard input is a run:
//   CONCURRENCY             all records once; prints the seconds from the first record that the function receives
//   CONCURRENCY GROUP FILE  a member of this group until it is killed; FILE gets a line for each record that is done

import io.confluent.parallelconsumer.ParallelConsumerOptions;
import io.confluent.parallelconsumer.ParallelConsumerOptions.ProcessingOrder;
import io.confluent.parallelconsumer.ParallelStreamProcessor;
import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

class ParallelConsumer {
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
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(Map.of(
            "bootstrap.servers", bootstrap,
            "group.id", group,
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
                done.write((context.offset() + "\n").getBytes());
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            } catch (java.io.IOException error) {
                throw new java.io.UncheckedIOException(error);
            }
            left.countDown();
        });
        left.await();
        double seconds = (System.nanoTime() - began.get()) / 1e9;
        processor.close();
        return seconds;
    }
}

// Commits of a real parallel-consumer that was stopped with gaps, in each of its encodings without compression, as JSON lines:
//   scripts/bench p12 --times 1   (fetches its jars)
//   java -cp "$PARALLEL_CONSUMER_JARS/*" tests/coordinator/tools/moving/StoppedConsumers.java "$COOP_KAFKA" \
//     > tests/coordinator/tools/moving/parallel_consumer_commits.jsonl

import io.confluent.parallelconsumer.ParallelConsumerOptions;
import io.confluent.parallelconsumer.ParallelConsumerOptions.ProcessingOrder;
import io.confluent.parallelconsumer.ParallelStreamProcessor;
import io.confluent.parallelconsumer.internal.DrainingCloseable.DrainingMode;
import io.confluent.parallelconsumer.offsets.OffsetEncoding;
import io.confluent.parallelconsumer.offsets.OffsetMapCodecManager;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.ConcurrentSkipListSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

class StoppedConsumers {
    private static final int RECORDS = 300;

    public static void main(String[] args) throws Exception {
        Random random = new Random(1);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            for (String name : List.of("BitSet", "BitSetV2", "RunLength", "RunLengthV2")) {
                OffsetMapCodecManager.forcedCodec = Optional.of(OffsetEncoding.valueOf(name));
                stopped(args[0], admin, name, failing(random));
            }
            OffsetMapCodecManager.forcedCodec = Optional.empty();
            stopped(args[0], admin, "the smallest", failing(random));
            stopped(args[0], admin, "nothing later", Set.of());
        }
        System.exit(0);
    }

    private static Set<Long> failing(Random random) {
        Set<Long> offsets = new TreeSet<>();
        while (offsets.size() < 40) {
            offsets.add((long) 20 + random.nextInt(RECORDS - 60));
        }
        return offsets;
    }

    private static void stopped(String bootstrap, Admin admin, String name, Set<Long> failing) throws Exception {
        String topic = "stopped-" + UUID.randomUUID();
        admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(Map.of(
                "bootstrap.servers", bootstrap,
                "key.serializer", ByteArraySerializer.class.getName(),
                "value.serializer", ByteArraySerializer.class.getName()))) {
            for (int i = 0; i < RECORDS; i++) {
                producer.send(new ProducerRecord<>(topic, ("" + i).getBytes(), ("" + i).getBytes())).get();
            }
        }
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(Map.of(
            "bootstrap.servers", bootstrap,
            "group.id", topic,
            "auto.offset.reset", "earliest",
            "enable.auto.commit", "false",
            "key.deserializer", ByteArrayDeserializer.class.getName(),
            "value.deserializer", ByteArrayDeserializer.class.getName()));
        ParallelStreamProcessor<byte[], byte[]> processor = ParallelStreamProcessor.createEosStreamProcessor(
            ParallelConsumerOptions.<byte[], byte[]>builder()
                .consumer(consumer)
                .ordering(ProcessingOrder.UNORDERED)
                .maxConcurrency(16)
                .defaultMessageRetryDelay(Duration.ofMinutes(5))
                .build());
        Set<Long> done = new ConcurrentSkipListSet<>();
        processor.subscribe(List.of(topic));
        processor.poll(context -> {
            if (failing.contains(context.offset())) {
                throw new RuntimeException("as wanted");
            }
            done.add(context.offset());
        });
        while (done.size() < RECORDS - failing.size()) {
            Thread.sleep(50);
        }
        Thread.sleep(1000);
        processor.close(Duration.ofSeconds(20), DrainingMode.DONT_DRAIN);
        OffsetAndMetadata commit =
            admin.listConsumerGroupOffsets(topic).partitionsToOffsetAndMetadata().get().get(new TopicPartition(topic, 0));
        System.out.println("{\"encoding\": \"" + name + "\", \"offset\": " + commit.offset() + ", \"metadata\": \""
            + commit.metadata() + "\", \"failing\": " + new TreeSet<>(failing) + "}");
    }
}

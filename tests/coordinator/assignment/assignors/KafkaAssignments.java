// Writes what Kafka's own assignors give to random groups, one JSON object a line (tests/coordinator/assignment/assignors/kafka_assignments.jsonl):
//   java -cp "$BROKER_JARS/*" tests/coordinator/assignment/assignors/KafkaAssignments.java 150 1 > tests/coordinator/assignment/assignors/kafka_assignments.jsonl

import java.util.*;
import java.util.stream.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;
import org.apache.kafka.common.TopicPartition;

class KafkaAssignments {
    public static void main(String[] args) {
        Random random = new Random(Long.parseLong(args[1]));
        for (int i = 0; i < Integer.parseInt(args[0]); i++) {
            Map<String, Integer> partitions = new TreeMap<>();
            for (int t = 1 + random.nextInt(5); t > 0; t--) partitions.put("t" + t, 1 + random.nextInt(8));
            Map<String, List<String>> topics = new TreeMap<>();
            boolean equal = random.nextInt(3) == 0;
            for (int m = 1 + random.nextInt(7); m > 0; m--) {
                topics.put("c" + random.nextInt(100), partitions.keySet().stream()
                        .filter(t -> equal || random.nextBoolean()).collect(Collectors.toList()));
            }
            System.out.printf("{\"partitions\":%s,\"topics\":%s,\"range\":%s,\"roundrobin\":%s}%n", json(partitions),
                    json(topics), given(new RangeAssignor(), partitions, topics),
                    given(new RoundRobinAssignor(), partitions, topics));
        }
    }

    static String given(AbstractPartitionAssignor assignor, Map<String, Integer> partitions,
            Map<String, List<String>> topics) {
        Map<String, Subscription> subscriptions = new HashMap<>();
        topics.forEach((member, names) -> subscriptions.put(member, new Subscription(names)));
        Map<String, List<String>> given = new TreeMap<>();
        assignor.assign(new HashMap<>(partitions), subscriptions).forEach((member, owned) -> given.put(member,
                owned.stream().map(TopicPartition::toString).sorted().collect(Collectors.toList())));
        return json(given);
    }

    static String json(Map<String, ?> map) {
        return map.entrySet().stream().map(e -> "\"" + e.getKey() + "\":" + value(e.getValue()))
                .collect(Collectors.joining(",", "{", "}"));
    }

    static String value(Object value) {
        if (!(value instanceof List)) return value.toString();
        return ((List<?>) value).stream().map(x -> "\"" + x + "\"").collect(Collectors.joining(",", "[", "]"));
    }
}

"""Raw record batches from Kafka, by consumers that are kept between tasks."""

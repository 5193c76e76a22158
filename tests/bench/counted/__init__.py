"""What is counted on the world in memory: what Google Cloud would bill, and how long a queue takes."""

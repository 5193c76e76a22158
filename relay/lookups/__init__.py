"""What is looked up at the API server before facts are published, and when hosts are looked at."""

"""The driver of a run as a job of a queue: submitted, followed, submitted again, cancelled."""

"""Schedules: entries of crontab and scrontab, chains of jobs, and what each of them starts."""

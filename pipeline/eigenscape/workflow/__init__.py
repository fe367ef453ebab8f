"""From a job to a finished run: stages and their keys, the plan, the runner, the results."""

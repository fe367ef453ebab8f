"""``eigenscape plan``."""

import json

from eigenscape.cli.arguments import Given, exit_status, on_a_job
from eigenscape.cli.printing.runs import print_plan


@on_a_job
def plan_command(given: Given) -> None:
    """Check a job or a study; print memory, disk and tasks.

    Nothing is computed.
    """
    with exit_status():
        loaded, cluster = given.load()

        from eigenscape.workflow.runner import fit_limits
        from eigenscape.workflow.spine import plan

        if loaded.study is not None:
            from eigenscape.cli.printing.studies import print_study_plan
            from eigenscape.study.plan import plan_study

            study = plan_study(loaded, on=cluster, run_dir=given.run_dir)
            print(json.dumps(study.to_json())) if given.as_json else print_study_plan(
                study, loaded.name
            )
            return
        planned = plan(loaded, on=cluster, run_dir=given.run_dir)
        # As in a run: a worker may have less memory than the job allows.
        limit = fit_limits(loaded, cluster).limits.memory_bytes
        if given.as_json:
            print(json.dumps(planned.to_json()))
        else:
            print_plan(planned, limit, of_worker=limit < loaded.limits.memory_bytes)
        planned.check(limit)

"""How well `plan` projects the peak of memory: projection, manifest and outside measurement.

    python tests/bench/memory.py [PIXELS ...]

For every size it makes a synthetic scene, plans and runs a job in a process of its own, samples
that process's anonymous memory from outside, and prints one JSON object. Linux only.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIZES = (20_000, 160_000, 640_000)


def main() -> None:
    sizes = [int(text) for text in sys.argv[1:]] or list(SIZES)
    with tempfile.TemporaryDirectory() as directory:
        rows = [measure(Path(directory), pixels) for pixels in sizes]
    print(json.dumps(rows, indent=1))


def measure(directory: Path, pixels: int) -> dict[str, float]:
    side = int(pixels**0.5)
    scene = directory / f"scene-{side}.tif"
    eigenscape("synth", str(scene), "--height", str(side), "--width", str(side))
    job = directory / f"job-{side}.toml"
    job.write_text(
        f'[scene]\npath = "{scene.name}"\nlabels = "scene-{side}_labels.tif"\n'
        '[output]\ndirectory = "runs"\n'
    )
    plan = json.loads(eigenscape("plan", str(job), "--json"))
    command = [sys.executable, "-m", "eigenscape", "run", str(job), "--json"]
    start = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        outside = 0
        while process.poll() is None:
            outside = max(outside, anonymous_bytes(process.pid))
            time.sleep(0.01)
        assert process.stdout is not None
        result = json.loads(process.stdout.read().splitlines()[-1])
    inside = max(stage["peak_bytes"] for stage in result["stages"])
    return {
        "pixels": side * side,
        "seconds": round(time.perf_counter() - start, 1),
        "projected_mib": plan["peak_bytes"] >> 20,
        "manifest_mib": inside >> 20,
        "outside_mib": outside >> 20,
        "projected_over_measured": round(plan["peak_bytes"] / inside, 2),
        "manifest_over_outside": round(inside / outside, 3),
    }


def anonymous_bytes(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    for line in status.splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    return 0


def eigenscape(*arguments: str) -> str:
    command = [sys.executable, "-m", "eigenscape", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()

"""Mutated inputs: each must be refused in a sentence, or give a plausible result.

    python tests/bench/faults/mutations.py [--number 1000] [--first 0] [--seed 0] [--only INDEX] [--keep DIR]

The small valid jobs of `corpus.py` are damaged one by one: bytes are flipped, ranges zeroed, doubled
or cut off, numbers and texts in headers and job files replaced by words, floats, negative and huge
numbers, shapes in the headers of arrays made impossible, members of archives renamed, swapped for links and
bombs, entities put into XML, attributes and datasets of HDF5 changed, and files replaced by others, by
directories, FIFOs, sockets, devices and loops of symbolic links. Then `eigenscape plan` and `eigenscape
run` are given, each in a fork of this process with 512 MiB of memory beyond what this one has, and 60
seconds.

It prints one JSON object; `failures` tells of each trial that ended with a traceback, a signal, a
hang, in an allocation that the limit refused, or in a result that cannot be. `--only` repeats one of
them, `--keep` leaves its files in a directory. The exit status is 1 where there are any.
"""

import argparse
import faulthandler
import gc
import io
import json
import os
import random
import re
import resource
import select
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from corpus import HEIGHT, SENSORS, WIDTH, write_corpus
from damage import command

LIMIT = 512 * 2**20
"""Bytes that a trial may allocate beyond what this process holds; the ``limits.memory`` of its job."""

GOOD = ("refused", "plausible")
BAD = ("escape", "traceback", "signal", "hang", "allocation", "status", "implausible")
NUMBERS = (
    "0", "1", "-1", "-3", "1.5", "many", "", "nan", "inf", "-inf", "1e300", "1e-300", "255", "256",
    "65536", "2147483647", "2147483648", "4294967296", "1000000", "99999999999", "9" * 25, "true",
)  # fmt: skip
WORDS = ("4", "2", '""', "[]", "{}", "\u00e9", "\x00", "x" * 5000, "../..", "/", "~", "*", "'")
INTEGERS = (0, 1, 2, 3, 255, 65535, 2**31 - 1, 2**31, 2**32 - 1, 100_000, 16_777_216)
TEXTS = {
    ".toml", ".hdr", ".vrt", ".xml", ".XML", ".txt", ".csv", ".tsv", ".geojson", ".json", ".zarray",
    ".zgroup", ".zattrs", ".zmetadata", ".prj", ".cpg",
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first trial")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, action="append", help="trials to repeat")
    parser.add_argument("--case", action="append", help="cases of the corpus; all by default")
    parser.add_argument(
        "--read", action="store_true", help="plan and read the scene, but run no job"
    )
    parser.add_argument("--sensors", action="store_true", help="the cases that are sensor products")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds of a command")
    parser.add_argument("--keep", type=Path, help="directory for the files of the trials")
    arguments = parser.parse_args()
    # In memory where there is room: commits wait for the disk.
    room = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=room) as directory:
        found = Trials(Path(directory), arguments).run()
    print(json.dumps(found, indent=1))
    return int(any(found[name] for name in BAD))


class Trials:
    """The corpus, and what becomes of each mutation of it."""

    def __init__(self, directory: Path, arguments: Any) -> None:
        self.directory, self.arguments = directory, arguments
        cases = write_corpus(directory / "corpus")
        chosen = arguments.case or [case.name for case in cases]
        if arguments.sensors:
            chosen = list(SENSORS)
        self.cases = [case for case in cases if case.name in chosen]

    def run(self) -> dict[str, Any]:
        """Try every case as it is, then the mutations; return the counts."""
        begin = time.monotonic()
        self._warm_up()
        counts: Counter[str] = Counter()
        kinds: dict[str, Counter[str]] = {}
        failures = []
        first = self.arguments.first
        numbers = self.arguments.only or range(first, first + self.arguments.number)
        for number in numbers:
            what, outcome, told = self._try(number)
            print(number, outcome, *what.values(), file=sys.stderr, flush=True)
            counts[outcome] += 1
            kinds.setdefault(what["kind"], Counter())[outcome] += 1
            if outcome not in GOOD:
                print(told[-1500:], file=sys.stderr, flush=True)
                again = f"--seed {self.arguments.seed} --only {number}"
                failures.append({**what, "outcome": outcome, "again": again, "told": told[-1500:]})
        return {
            "seed": self.arguments.seed,
            "trials": len(numbers),
            **{name: counts[name] for name in (*GOOD, *BAD)},
            "by_kind": kinds,
            "seconds": round(time.monotonic() - begin, 1),
            "failures": failures,
        }

    def _warm_up(self) -> None:
        """Run every case undamaged in this process, so that its forks have loaded and compiled all.

        What is only read needs less, and the forks of a smaller process are quicker.
        """
        for case in self.cases:
            self._inside(case)
        # zarr starts threads of its own, and anew after a fork.
        others = [one.name for one in threading.enumerate() if one is not threading.main_thread()]
        others = [name for name in others if not name.startswith(("zarr_io", "asyncio_"))]
        assert not others, f"threads that a fork would lose: {others}"
        # What is there already costs no collection, and no copies of its pages.
        gc.collect()
        gc.freeze()

    def _inside(self, case: Path) -> None:
        before, (out, err) = threading.active_count(), (sys.stdout, sys.stderr)
        sys.stdout, sys.stderr = told = io.StringIO(), io.StringIO()
        path = self.directory / "warm"
        try:
            if self.arguments.read:
                status = plan_and_read(case / "job.toml", path)
            else:
                status = command("run", case / "job.toml", "--run-dir", path, "--json")
        finally:
            sys.stdout, sys.stderr = out, err
        assert status == 0, f"{case.name} ends with {status}: {told[1].getvalue()}"
        if path.exists():
            shutil.rmtree(path)
        # Whoever watched the memory of the run needs a moment to end.
        for _ in range(100):
            if threading.active_count() <= before:
                return
            time.sleep(0.02)

    def _try(self, number: int) -> tuple[dict[str, Any], str, str]:
        chance = random.Random(f"{self.arguments.seed}-{number}")
        case = chance.choice(self.cases)
        folder = self.arguments.keep or self.directory / "trial"
        folder = folder / str(number)
        shutil.copytree(case, folder)
        file, kind = mutate(folder, chance, self.cases)
        what = {"number": number, "case": case.name, "file": file, "kind": kind}
        path = folder / "run"
        for name in ("read",) if self.arguments.read else ("plan", "run"):
            before = set(os.listdir(folder.parent))
            status, told = self._command(name, folder, path)
            if set(os.listdir(folder.parent)) != before:
                outcome = "escape"
                break
            outcome = judge(status, told, path, final=name == "run")
            what["by"] = name
            if outcome != "plausible":
                break
        if self.arguments.keep is None:
            remove(folder)
        return what, outcome, told

    def _command(self, name: str, folder: Path, path: Path) -> tuple[int | str, str]:
        arguments = (name, folder / "job.toml", "--run-dir", path, "--json")
        told = self.directory / "told"
        if name == "read":
            # One fork for both: most of the time of a trial is that of its forks.
            return in_child(
                lambda: plan_and_read(folder / "job.toml", path), told, self.arguments.timeout
            )
        return in_child(lambda: command(*arguments), told, self.arguments.timeout)


def plan_and_read(job: Path, path: Path) -> int:
    """Plan a job, and read all of its scene; return the status that a command would have."""
    return command("plan", job, "--run-dir", path, "--json") or read(job)


def read(job: Path) -> int:
    """Read all of a scene as its job does, in strips; return the status that a command would have."""
    from eigenscape.errors import EigenscapeError
    from eigenscape.job.jobfile import load_job
    from eigenscape.scenes.ingest.storage import strips_of
    from eigenscape.scenes.open import open_scene

    try:
        loaded = load_job(job)
        scene = open_scene(loaded.scene, loaded.resolve)
        for group in strips_of(scene, LIMIT // 4).groups:
            for rows in group:
                values, valid = scene.read(*rows)
                assert valid.shape == values.shape[:2]
    except EigenscapeError as error:
        print(f"eigenscape: {error}", file=sys.stderr)
        return error.exit_status
    return 0


def judge(status: int | str, told: str, path: Path, *, final: bool) -> str:
    """Return what became of a command."""
    if status == "hang":
        return "hang"
    short = ("MemoryError", "out of memory", "bad_alloc", "Cannot allocate", "Unable to allocate")
    if status and any(words in told for words in short):
        return "allocation"
    if "Traceback" in told:
        return "traceback"
    assert isinstance(status, int)
    if status < 0:
        return "signal"
    if status == 2:
        return "refused" if "eigenscape:" in told else "traceback"
    if status == 3:
        # Not converged: the results are kept, and said to be so.
        return "plausible"
    if status:
        return "status"
    return "plausible" if not final or is_plausible(path) else "implausible"


def is_plausible(path: Path) -> bool:
    """Return whether what a run wrote can be: classes and confidences of the size of a small scene."""
    maps = sorted(path.rglob("class_map.tif"))
    if not maps:
        # Tables have a file of rows instead, studies a table.
        return any(path.rglob("*.csv")) or any(path.rglob("outputs/*"))
    import rasterio

    for file in maps:
        with (
            rasterio.open(file) as classes,
            rasterio.open(file.with_name("confidence.tif")) as sure,
        ):
            calls, shares = classes.read(1), sure.read(1)
        if calls.shape != shares.shape or calls.size > 100 * HEIGHT * WIDTH or not calls.any():
            return False
        if not ((shares[calls > 0] >= 0) & (shares[calls > 0] <= 1)).all():
            return False
    return True


def mutate(folder: Path, chance: random.Random, cases: list[Path]) -> tuple[str, str]:
    """Damage one file of a case; return its name and how."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    file = chance.choice(files)
    name = str(file.relative_to(folder))
    kinds: list[str] = ["flip", "cut", "zero", "double", "swap"]
    kinds += ["empty", chance.choice(sorted(REPLACEMENTS))]
    special = SPECIAL.get(file.suffix or file.name)
    if file.suffix in TEXTS or file.name in TEXTS:
        kinds += ["number"] * 6 + ["word"] * 3 + ["lines", "letters"]
        kinds += ["xml"] * 4 if file.suffix.lower() == ".xml" else []
    elif special:
        kinds += [special] * 6 + ["integer"]
    else:
        kinds += ["integer"] * 5
    kind = chance.choice(kinds)
    if kind in REPLACEMENTS:
        # A whole zarr store as often as one of its files.
        store = next((one for one in file.parents if one.suffix == ".zarr"), None)
        if store is not None and chance.random() < 0.5:
            file, name = store, store.name
        remove(file)
        REPLACEMENTS[kind](file, chance)
        return name, kind
    if kind == "swap":
        others = [path for case in cases for path in sorted(case.rglob("*")) if path.is_file()]
        alike = [path for path in others if path.suffix == file.suffix]
        file.write_bytes(chance.choice(alike if chance.random() < 0.5 else others).read_bytes())
        return name, kind
    file.write_bytes(EDITS[kind](file.read_bytes(), chance))
    return name, kind


def _flip(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    # The beginning, where headers are, as often as anywhere.
    reach = min(len(changed), 400) if chance.random() < 0.5 else len(changed)
    for _ in range(chance.choice((1, 1, 2, 8)) if reach else 0):
        changed[chance.randrange(reach)] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _range(content: bytes, chance: random.Random) -> tuple[int, int]:
    first = chance.randrange(len(content) + 1)
    return first, chance.randint(first, len(content))


def _cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def _zero(content: bytes, chance: random.Random) -> bytes:
    first, stop = _range(content, chance)
    return content[:first] + bytes(stop - first) + content[stop:]


def _double(content: bytes, chance: random.Random) -> bytes:
    first, stop = _range(content, chance)
    return content[:stop] + content[first:]


def _integer(content: bytes, chance: random.Random) -> bytes:
    """Put an interesting number into a binary header, at the beginning or at the end of the file."""
    form = chance.choice(("<H", "<I", "<Q", ">I"))
    size = struct.calcsize(form)
    reach = min(len(content), 512)
    if reach < size:
        return content
    place = chance.randrange(reach - size + 1) & ~1
    if chance.random() < 0.4:
        place += len(content) - reach
    number = chance.choice(INTEGERS) % 2 ** (8 * size)
    return content[:place] + struct.pack(form, number) + content[place + size :]


def _replace_one(pattern: str, choices: tuple[str, ...]) -> Callable[[bytes, random.Random], bytes]:
    def edit(content: bytes, chance: random.Random) -> bytes:
        text = content.decode("latin-1")
        found = list(re.finditer(pattern, text))
        if not found:
            return content
        # A table is mostly numbers: its header as often as the rest.
        one = chance.choice(found[:40] if chance.random() < 0.5 else found)
        new = chance.choice(choices).encode()
        return text[: one.start()].encode("latin-1") + new + text[one.end() :].encode("latin-1")

    return edit


def _lines(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if not lines:
        return content
    place, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    kind = chance.choice(("drop", "double", "swap"))
    if kind == "drop":
        del lines[place]
    elif kind == "double":
        lines.insert(other, lines[place])
    else:
        lines[place], lines[other] = lines[other], lines[place]
    return b"".join(lines)


def _letters(content: bytes, chance: random.Random) -> bytes:
    """Put letters of another encoding, or none that are letters, somewhere into a text."""
    place = chance.randrange(len(content) + 1)
    letters = chance.choice((b"\xe4\xf6\xfc", b"\xff\xfe", b"\x00", b"\xef\xbb\xbf", b"\r", b'"'))
    return content[:place] + letters + content[place:]


def _npy(content: bytes, chance: random.Random) -> bytes:
    """Change shape, type or order in the header of a .npy file, which stays of its length's form."""
    if content[:6] != b"\x93NUMPY":
        return content
    size = struct.unpack("<H", content[8:10])[0]
    header = content[10 : 10 + size].decode("latin-1")
    kind = chance.choice(("number", "number", "type", "order", "word"))
    if kind == "number":
        found = chance.choice(list(re.finditer(r"\d+", header)))
        header = header[: found.start()] + chance.choice(NUMBERS) + header[found.end() :]
    elif kind == "type":
        types = ("|O", "<c16", "<U9", "|V8", "<M8[ns]", ">i2", "<f2", "|b1", "<i8", "spam", "<f16")
        header = re.sub(r"'descr': '[^']*'", f"'descr': '{chance.choice(types)}'", header)
    elif kind == "order":
        header = header.replace("False", chance.choice(("True", "7")))
    else:
        header = header.replace("shape", chance.choice(("Shape", "shap", "__import__('os')")))
    header = header.rstrip() + "\n"
    return content[:8] + struct.pack("<H", len(header)) + header.encode() + content[10 + size :]


def _npz(content: bytes, chance: random.Random) -> bytes:
    """Write the members of a .npz anew, one of them changed within, or of another name."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(out, "w") as target:
        names = source.namelist()
        changed = chance.choice(names)
        for name in names:
            member = source.read(name)
            kind = chance.choice(("header", "flip", "cut", "name", "bomb", "pickle"))
            if name == changed:
                if kind == "header":
                    member = _npy(member, chance)
                elif kind == "bomb":
                    header = io.BytesIO()
                    shape = chance.choice(((40_000, 40_000), (2**31, 3), (30_000, 20_000, 6)))
                    fields = {"descr": "|u1", "fortran_order": False, "shape": shape}
                    np.lib.format.write_array_header_1_0(header, fields)
                    member = header.getvalue() + bytes(20 * 2**20)
                elif kind == "pickle":
                    whole = io.BytesIO()
                    np.save(whole, np.array([{"a": 1}], object), allow_pickle=True)
                    member = whole.getvalue()
                elif kind == "name":
                    name = chance.choice(("../x.npy", "cube", " ", "a/b.npy", "gt.npy.npy"))
                else:
                    member = EDITS[kind](member, chance)
            target.writestr(name, member, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _zip(content: bytes, chance: random.Random) -> bytes:
    """Write the members of a zip file anew, one of them changed within, or of another name."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(out, "w") as target:
        names = source.namelist()
        texts = [name for name in names if Path(name).suffix in TEXTS]
        changed = chance.choice(texts if texts and chance.random() < 0.6 else names)
        kind = chance.choice(
            (*("text",) * 4, "flip", "cut", "name", "bomb", "link", "extra", "lost")
        )
        for name in names:
            member, info = source.read(name), zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            if name == changed:
                if kind == "lost":
                    continue
                if kind == "name":
                    info.filename = chance.choice(
                        ("../x.xml", "/etc/passwd", f"../{name}", "", f"a/{name}")
                    )
                elif kind == "bomb":
                    member = bytes(2**27)
                elif kind == "link":
                    info.external_attr, member = 0o120777 << 16, b"/etc/passwd"
                elif kind == "extra":
                    target.writestr(f"../../{Path(name).name}", member)
                elif kind == "text":
                    member = _xml(member, chance)
                else:
                    member = EDITS[kind](member, chance)
            target.writestr(info, member)
    return out.getvalue()


def _xml(content: bytes, chance: random.Random) -> bytes:
    """Change a number or a word, or put a document type with entities in front of the root."""
    kind = chance.choice(("number", "number", "number", "word", "lines", "entities"))
    if kind != "entities" or b"?>" not in content[:200]:
        return EDITS[kind if kind != "entities" else "number"](content, chance)
    begin = content.index(b"?>") + 2
    levels = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 9}">' for n in range(9))
    document = f'<!DOCTYPE x [<!ENTITY e0 "lol">{levels}<!ENTITY f SYSTEM "file:///etc/passwd">]>'
    body = content[begin:]
    place = body.find(b">", body.find(b">") + 1) + 1
    entity = chance.choice((b"&e9;", b"&f;", b""))
    return content[:begin] + document.encode() + body[:place] + entity + body[place:]


def _hdf5(content: bytes, chance: random.Random) -> bytes:
    """Change an attribute or a dataset of an HDF5 file."""
    import h5py

    stream = io.BytesIO(content)
    try:
        with h5py.File(stream, "r+") as file:
            items: list[Any] = [file]
            file.visititems(lambda _, item: items.append(item))
            owners = [item for item in items if len(item.attrs)]
            cells = [item for item in items if isinstance(item, h5py.Dataset)]
            if owners and chance.random() < 0.5:
                _change_attribute(chance.choice(owners).attrs, chance)
            else:
                _change_dataset(file, chance.choice(cells), chance)
    except Exception:
        # Damaged before.
        return content
    return stream.getvalue()


def _change_attribute(attributes: Any, chance: random.Random) -> None:
    name = chance.choice(list(attributes))
    values: list[Any] = [
        0, -1, 1e300, float("nan"), float("inf"), 2**63, "many", "", b"\xff\xfe", "x" * 5000, [], [1.0],
        np.zeros(6), np.full(6, np.nan), np.zeros((3, 3)), np.array(["a", "b"], "S1"), np.arange(5000.0),
    ]  # fmt: skip
    kind = chance.choice(("set", "set", "set", "delete", "scale"))
    if kind == "delete":
        del attributes[name]
    elif kind == "scale" and np.asarray(attributes[name]).dtype.kind in "iuf":
        attributes[name] = np.asarray(attributes[name]) * chance.choice((0, -1, 1e6, 1e-6))
    else:
        attributes[name] = chance.choice(values)


def _change_dataset(file: Any, item: Any, chance: random.Random) -> None:
    import h5py

    name, shape, dtype = item.name, item.shape, item.dtype
    kind = chance.choice(
        (
            "huge",
            "wide",
            "chunk",
            "empty",
            "text",
            "link",
            "soft",
            "loop",
            "lost",
            "group",
            "values",
            "axes",
        )
    )
    if kind == "values":
        if item.size and dtype.kind in "iuf":
            values = np.asarray(item[()]).ravel()
            many = chance.choice((1, values.size))
            bad = chance.choice(
                (0, -1, 1, 2**15 - 1) if dtype.kind != "f" else (np.nan, np.inf, -1e30, 1e30)
            )
            values[:many] = np.asarray(bad).astype(dtype, casting="unsafe")
            item[...] = values.reshape(shape)
        return
    del file[name]
    if kind == "huge":
        size = tuple(2**20 for _ in shape) or (2**20,)
        file.create_dataset(name, size, dtype, chunks=(1,) * len(size))
    elif kind == "wide" and len(shape) > 1:
        file.create_dataset(name, (*shape[:-1], 2**26), dtype, chunks=True)
    elif kind == "chunk" and shape:
        file.create_dataset(
            name, shape, dtype, maxshape=(None,) * len(shape), chunks=(2**9,) * len(shape)
        )
    elif kind == "empty":
        file.create_dataset(
            name, (0,) * max(1, len(shape)), dtype, maxshape=(None,) * max(1, len(shape))
        )
    elif kind == "text":
        file[name] = chance.choice((b"many", "x" * 1000))
    elif kind == "link":
        file[name] = h5py.ExternalLink(
            chance.choice(("/etc/passwd", "other.h5", "/dev/zero")), "/x"
        )
    elif kind == "soft":
        file[name] = h5py.SoftLink("/nothing")
    elif kind == "loop":
        file[name] = h5py.SoftLink(name)
    elif kind == "group":
        file.create_group(name)
    elif kind == "axes":
        file.create_dataset(name, shape[::-1], dtype if dtype.kind in "iuf" else "f4")


EDITS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "flip": _flip, "cut": _cut, "zero": _zero, "double": _double, "integer": _integer,
    "number": _replace_one(r"-?\d+(\.\d+)?", NUMBERS),
    "word": _replace_one(r"[A-Za-z_][\w.]*", WORDS + NUMBERS),
    "lines": _lines, "letters": _letters, "npy": _npy, "npz": _npz, "zip": _zip, "hdf5": _hdf5,
    "xml": _xml,
    "empty": lambda content, chance: b"",
}  # fmt: skip
SPECIAL = {
    ".npy": "npy",
    ".npz": "npz",
    ".zip": "zip",
    ".nc": "hdf5",
    ".h5": "hdf5",
    ".he5": "hdf5",
}


def _loop(path: Path, chance: random.Random) -> None:
    other = path.with_name(f"{path.name}-2")
    path.symlink_to(other.name)
    other.symlink_to(path.name)


def _socket(path: Path, chance: random.Random) -> None:
    # The paths of sockets are short.
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(here)


REPLACEMENTS: dict[str, Callable[[Path, random.Random], None]] = {
    "fifo": lambda path, chance: os.mkfifo(path),
    "loop": _loop,
    "directory": lambda path, chance: path.mkdir(),
    "socket": _socket,
    "device": lambda path, chance: path.symlink_to(
        chance.choice(("/dev/zero", "/dev/null", "/dev/full", "/dev/tty", "/proc/self/mem"))
    ),
    "dangling": lambda path, chance: path.symlink_to("nothing-there"),
    "absent": lambda path, chance: None,
}  # fmt: skip


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def in_child(work: Callable[[], int], told: Path, timeout: float) -> tuple[int | str, str]:
    """Work in a fork with little memory; return its status, negative for a signal, and what it said."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if not child:
        status = 99
        try:
            descriptor = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(descriptor, 1)
            os.dup2(descriptor, 2)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            # Where it crashes; and where it hangs, before it is killed.
            faulthandler.enable(file=sys.stderr)
            faulthandler.dump_traceback_later(0.9 * timeout, file=sys.stderr)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            most = _data_bytes() + LIMIT
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))
            status = work()
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    handle = os.pidfd_open(child)
    ended, _, _ = select.select([handle], [], [], timeout)
    os.close(handle)
    if not ended:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    text = told.read_text(errors="replace")
    return os.waitstatus_to_exitcode(status) if ended else "hang", text


def _data_bytes() -> int:
    """Return the private writable memory of this process, which `RLIMIT_DATA` counts."""
    with open("/proc/self/status") as stream:
        found = next(line for line in stream if line.startswith("VmData"))
    return int(found.split()[1]) * 1024


if __name__ == "__main__":
    sys.exit(main())

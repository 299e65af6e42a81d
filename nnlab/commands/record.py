"""`nnlab record NAME`: make a recorded run again, on the machine it is called on."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "make one of the course's recorded runs again, on this machine"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="which recording; without it, the names are listed")
    parser.add_argument("--out", metavar="FOLDER", default="recordings", help="where NAME.json goes (%(default)s)")
    parser.add_argument("--checkpoints", metavar="FOLDER", help="keep the trained network there as well")
    parser.add_argument("--backend", default="cupy", help="numpy, sim or cupy (%(default)s)")
    parser.add_argument(
        "--device", metavar="FILE.toml", help="measure this host and card for the simulated GPU instead"
    )
    parser.add_argument("--engine", default="graph", help="how steps are run (%(default)s)")


def run(arguments: argparse.Namespace) -> int:
    import nnlab
    from nnlab.engines import engine
    from nnlab.errors import UnknownName
    from nnlab.lessons.recorded import cub, growth, making, on_card, port, quality, staircase, sweep

    engine(arguments.engine)  # raises UnknownName, before any work is done
    if arguments.device is not None:
        return _device(Path(arguments.device), arguments.backend)
    trained = {"siren-quality": quality.record, "siren-sweep": sweep.record}
    timed = {  # in ways of their own: --engine is not for them
        "growth-cpu": growth.record,
        "growth-h200": growth.record,
        "port-email": port.email,
        "lessons-h200": on_card.record,
        "port-cub": port.cub,
        "staircase-h200": staircase.record,
    }
    names = (*trained, *timed, *(f"cub-{name}" for name in cub.RUNS))
    name = arguments.name
    if name is None:
        print("\n".join(names))
        return 0
    if name not in names:
        raise UnknownName("recording", name, names)
    path = Path(arguments.out) / f"{name}.json"
    checkpoint = None if arguments.checkpoints is None else Path(arguments.checkpoints) / f"{name}.safetensors"
    for target in (path, checkpoint):
        if target is not None:
            making.check(target)
    b = nnlab.backend(arguments.backend)
    command = f"nnlab record {name} --backend {arguments.backend}"
    if name not in timed:
        command += f" --engine {arguments.engine}"
    made = making.made_here(b, command)
    if name in timed:
        record = timed[name](b)
    elif name in trained:
        record = trained[name](b, arguments.engine)
    else:
        record = cub.paint(name.removeprefix("cub-"), b, arguments.engine, checkpoint)
    making.write(path, {"made": made} | record)
    print(path)
    return 0


def _device(path: Path, backend: str) -> int:
    """Measure a device file; nnlab.backend("sim", device="FILE.toml") then models this host and card."""
    import datetime

    import nnlab
    from nnlab.backends.calibrate import calibrate, device_file
    from nnlab.files import check_target

    if path.suffix != ".toml":
        raise ValueError(f"a device file ends in .toml, {path} does not")
    check_target(path)
    b = nnlab.backend(backend, **({"memory": 2**31} if backend == "sim" else {}))
    source = f"nnlab record --device, {datetime.date.today()}; what it cannot measure is the H200's"
    path.write_text(device_file(calibrate(b), title=b.home, source=source), encoding="utf-8")
    print(path)
    return 0

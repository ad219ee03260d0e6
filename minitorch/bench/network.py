"""All-reduce between two hosts on a 1 Gbit/s link, against what a full-duplex TCP stream carries
there.

The hosts are network namespaces of this machine joined by a veth pair, whose ends a token bucket
limits: real TCP through the real kernel, an emulated wire. Needs root and iproute2; whatever was
made is removed again, also after an error.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from .launching import find_mpiexec, is_root, mpi_worker
from .measure import Figure, alternate, compare
from .peers import WORKERS, Worker
from .registry import Settings, Skipped, benchmark

MiB = 2**20
TARGET = 0.95  # of what the stream carries
DEVICE = "wire"  # in either namespace


@dataclass(frozen=True)
class Host:
    """A namespace, its address, and what its end of the wire is called outside."""

    namespace: str
    address: str
    device: str


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skipped(f"`{' '.join(command)}` failed: {done.stderr.strip() or done.stdout.strip()}")


@contextmanager
def two_hosts(rate: str = "1gbit") -> Iterator[tuple[Host, Host]]:
    """Make two hosts on one shaped wire, and remove them.

    Raises
    ------
    Skipped
        Not root, no iproute2, or a kernel that does not let us.
    """
    if not is_root():
        raise Skipped("network namespaces need root")
    for tool in ("ip", "tc"):
        if shutil.which(tool) is None:
            raise Skipped(f"`{tool}` is missing: install iproute2")
    mark = f"mt{os.getpid() % 100000}"
    hosts = tuple(
        Host(f"{mark}{end}", f"10.213.77.{i}", f"{mark}{end}") for i, end in ((1, "a"), (2, "b"))
    )
    made: list[str] = []
    try:
        for host in hosts:
            _run("ip", "netns", "add", host.namespace)
            made.append(host.namespace)
        _run("ip", "link", "add", hosts[0].device, "type", "veth", "peer", "name", hosts[1].device)
        for host in hosts:
            _run(*f"ip link set {host.device} netns {host.namespace} name {DEVICE}".split())
            for command in (
                f"ip addr add {host.address}/24 dev {DEVICE}",
                f"ip link set {DEVICE} up",
                "ip link set lo up",
                f"tc qdisc add dev {DEVICE} root tbf rate {rate} burst 128kbit latency 50ms",
            ):
                _run("ip", "netns", "exec", host.namespace, *command.split())
        yield hosts[0], hosts[1]
    finally:
        for name in made:  # a namespace takes its devices with it
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
        subprocess.run(["ip", "link", "delete", hosts[0].device], capture_output=True, check=False)


class Stream:
    """A TCP stream between the hosts; both ends asked together."""

    def __init__(
        self, stack: ExitStack, settings: Settings, hosts: tuple[Host, Host], port: int = 47113
    ) -> None:
        def start(host: Host, role: str) -> Worker:
            command = [
                "ip",
                "netns",
                "exec",
                host.namespace,
                settings.python,
                str(WORKERS / "tcp.py"),
                role,
                hosts[0].address,
                str(port),
            ]
            return Worker(command, name=f"tcp.py {role}", patience=60)

        with ThreadPoolExecutor(2) as pool:
            starting = [
                pool.submit(start, host, role)
                for host, role in zip(hosts, ("listen", "connect"), strict=True)
            ]
        self.ends = [stack.enter_context(future.result()) for future in starting]

    def exchange(self, size: int) -> float:
        """Seconds for `size` bytes in both directions at once."""
        for end in self.ends:
            end.send("exchange", size=size)
        return max(end.receive() for end in self.ends)


def _launcher(folder: Path) -> str:
    """Write what MPICH's launcher calls as `SCRIPT HOST COMMAND...`; hosts are our namespaces."""
    script = folder / "in_namespace"
    script.write_text(
        "#!/bin/sh\n# A host is asked for by its address; its namespace runs the rest.\n"
        'while [ "${1#-}" != "$1" ]; do shift; done\nhost=$1; shift\n'
        'exec ip netns exec "$(cat "$(dirname "$0")/$host")" sh -c "$*"\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


def _across(settings: Settings, stack: ExitStack, hosts: tuple[Host, Host]) -> Worker:
    mpiexec, flavour = find_mpiexec(settings)
    if flavour != "mpich":
        raise Skipped(f"crossing namespaces is written for MPICH's launcher; {mpiexec} is another")
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    for host in hosts:
        (folder / host.address).write_text(host.namespace)
    options = (
        "-launcher",
        "rsh",
        "-launcher-exec",
        _launcher(folder),
        "-hosts",
        ",".join(host.address for host in hosts),
        "-ppn",
        "1",
        "-localhost",
        hosts[0].address,
    )
    # mpiexec itself must sit where the ranks can call back: in the first namespace.
    inside = folder / "mpiexec"
    inside.write_text(f'#!/bin/sh\nexec ip netns exec {hosts[0].namespace} {mpiexec} "$@"\n')
    inside.chmod(inside.stat().st_mode | stat.S_IXUSR)
    return mpi_worker(
        replace(settings, mpiexec=str(inside)),
        options=options,
        MPIR_CVAR_NOLOCAL="1",
        UCX_TLS="tcp,self",
        UCX_NET_DEVICES=DEVICE,
    )


@benchmark(
    "network",
    "all-reduce of 16 MiB, 2 hosts on 1 Gbit/s, against a full-duplex TCP stream: at least 0.95 x",
)
def network(settings: Settings) -> Iterator[Figure]:
    """Each of two ranks sends the buffer's size once and receives as much: as the stream does."""
    size = 16 * MiB
    with ExitStack() as stack:
        hosts = stack.enter_context(two_hosts())
        stream = Stream(stack, settings, hosts)
        mpi = _across(settings, stack, hosts)
        timers = {
            "ours": lambda: mpi.ask("allreduce", who="ours", size=size, number=1),
            "TCP": lambda: stream.exchange(size),
            "MPI": lambda: mpi.ask("allreduce", who="in_place", size=size, number=1),
        }
        times = alternate(timers, settings.pick(9, 3), warmup=1)
    note = "two namespaces of this machine, emulated wire"
    yield compare(
        "network",
        "16 MiB vs TCP stream",
        times,
        "ours",
        "TCP",
        target=TARGET,
        most=False,
        note=note,
    )
    yield compare("network", "16 MiB vs MPI", times, "ours", "MPI", most=False, note=note)

"""A Dask cluster of real processes on loopback, with mutual TLS; certificates are made here."""

import datetime
import ipaddress
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from hushfit.dask import connected

PATIENCE = 60.0


def _name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(subject, key, issuer, signer, authority):
    now = datetime.datetime.now(datetime.UTC)
    local = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(hours=2))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(local, critical=False)
        .sign(signer, hashes.SHA256())
    )


def _write(path, data):
    path.write_bytes(data)
    path.chmod(0o600)


def make_certificates(folder):
    """An authority, and one certificate that it signed: paths of ca, cert and key."""
    keys = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("ca", "node")}
    issuer = _name("test authority")
    made = {
        "ca": _certificate(issuer, keys["ca"], issuer, keys["ca"], True),
        "node": _certificate(_name("node"), keys["node"], issuer, keys["ca"], False),
    }
    pem = serialization.Encoding.PEM
    for name, certificate in made.items():
        _write(folder / f"{name}.pem", certificate.public_bytes(pem))
    private = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    _write(folder / "node.key", keys["node"].private_bytes(pem, *private))
    return folder / "ca.pem", folder / "node.pem", folder / "node.key"


class Cluster:
    """A scheduler and workers, each a process; every one is ended at the end."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.files = make_certificates(self.folder)
        self.processes = {}
        self._start("scheduler", "dask_scheduler", "--port", "0", "--no-dashboard")
        self.address = self._reported("scheduler", "Scheduler at:")

    def _start(self, name, module, *arguments):
        ca, cert, key = map(str, self.files)
        tls = ("--tls-ca-file", ca, "--tls-cert", cert, "--tls-key", key, "--protocol", "tls")
        one = {"OMP_NUM_THREADS": "1", "HUSHFIT_THREADS": "1", "TMPDIR": str(self.folder)}
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{module}", *tls, "--host", "127.0.0.1"]
                + list(arguments),
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **one},
            )

    def _reported(self, name, words):
        """Wait for a line of a log, and return what follows the words in it."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            for line in self.log(name).splitlines():
                if words in line:
                    return line.split(words)[1].strip()
            assert self.processes[name].poll() is None, self.log(name)
            time.sleep(0.05)
        raise AssertionError(f"{name} did not say {words!r}: {self.log(name)}")

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(encoding="utf-8")

    def worker(self, name):
        """Start a worker of one thread, without a nanny: whoever kills it has killed it."""
        plain = ("--no-nanny", "--no-dashboard", "--nthreads", "1", "--memory-limit", "0")
        self._start(name, "dask_worker", self.address, "--name", name, *plain)
        return self

    def kill(self, name):
        self.processes[name].send_signal(signal.SIGKILL)
        self.processes[name].wait()

    @contextmanager
    def client(self, workers):
        with connected(self.address, *self.files) as client:
            client.wait_for_workers(workers, timeout=PATIENCE)
            yield client

    def close(self):
        for process in reversed(self.processes.values()):
            process.kill()
            process.wait()


@contextmanager
def cluster(folder, workers):
    made = Cluster(folder)
    try:
        for number in range(workers):
            made.worker(f"worker-{number}")
        yield made
    finally:
        made.close()

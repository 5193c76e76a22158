"""Google's emulators of Pub/Sub and Firestore, as programs of the local stack.

Java is started directly: `gcloud beta emulators`, when killed, leaves its Java process running.
"""

from pathlib import Path

from tpu_standins.prerequisites import Tools
from tpu_standins.processes import Listens, Program

# CPU use is less than half of that with the defaults: the emulators are small, live for minutes, and Google's own.
JVM_OPTIONS = (
    *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m"),
    *("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote"),
)
FIRESTORE_MAIN = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"


def pubsub(tools: Tools, port: int, folder: Path) -> Program:
    """Return the Pub/Sub emulator. If its port is taken it keeps running without one: only its output shows that."""
    return Program(
        name="pubsub",
        command=(*_java(tools, folder), "-jar", str(tools.pubsub_jar), *_address(port)),
        ready=Listens(port),
        folder=folder,
        hopeless="BindException.*",
    )


def firestore(tools: Tools, port: int, folder: Path) -> Program:
    """Return the Firestore emulator. It also opens a port of its own choice for its console."""
    return Program(
        name="firestore",
        command=(
            *_java(tools, folder),
            "-cp",
            str(tools.firestore_jar),
            FIRESTORE_MAIN,
            "start",
            *_address(port),
        ),
        ready=Listens(port),
        folder=folder,
        hopeless="BindException.*",
    )


def _java(tools: Tools, folder: Path) -> tuple[str, ...]:
    """Return the java command: messages in English, temporary files in `folder`, which is removed at the end."""
    return (str(tools.java), *JVM_OPTIONS, f"-Djava.io.tmpdir={folder}", "-Duser.language=en")


def _address(port: int) -> tuple[str, str]:
    return ("--host=127.0.0.1", f"--port={port}")

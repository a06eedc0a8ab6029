"""machine.py - one emulated machine: starts QEMU on an image and gives what it writes on its serial line, within a deadline.

The first serial line carries what the machine's programs write, the second, a file, what its kernel says.
"""

import os
import selectors
import subprocess
import time

MEMORY_MIB = 1536
KERNEL_LOG_TAIL = 40


def logged(disk, log):
    """A disk that also writes down, in `log`, what it is told (write_log.py)."""
    return ["-blockdev", f"driver=file,filename={disk},node-name=file", "-blockdev", "driver=raw,file=file,node-name=disk",
            "-blockdev", f"driver=file,filename={log},node-name=log",
            "-blockdev", "driver=blklogwrites,file=disk,log=log,log-super-update-interval=1,node-name=logged",
            "-device", "virtio-blk-pci,drive=logged"]


def drives(image, disk, log, others):
    """disk: a file that keeps what is written to it, or None for the image's own, which forgets it. others: further ones, forgetful too."""
    if log:
        return logged(disk, log)
    first = f"file={disk},cache=writeback" if disk else f"file={image.disk},cache=unsafe,snapshot=on"
    rest = [f"file={other},cache=unsafe,snapshot=on" for other in others]
    return [word for drive in (first, *rest) for word in ("-drive", f"format=raw,if=virtio,{drive}")]


def command(image, words, kernel_log, disks):
    return ["qemu-system-x86_64", "-cpu", "max", "-m", str(MEMORY_MIB), "-smp", "2", "-nic", "none", "-display", "none", "-monitor", "none",
            "-no-reboot", "-kernel", image.kernel, "-initrd", image.initramfs,
            "-append", f"console=ttyS1 quiet panic=-1 no_timer_check {words}",  # on a busy host a timer interrupt may be late
            *disks, "-serial", "stdio", "-serial", f"file:{kernel_log}"]


class Machine:
    """A running machine; `with` makes sure that it ends."""

    def __init__(self, image, plan, suites, folder, disk=None, log=None, others=()):
        self.kernel_log = os.path.join(folder, f"kernel-{plan.name}.log")
        words = f"caisson.layout={plan.layout} caisson.suites={','.join(suites)} {plan.words}"
        words = command(image, words, self.kernel_log, drives(image, disk, log, others))
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        """As when the power goes."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def lines(self, seconds):
        """Lines as they come, until the machine is off or the time is over; what was begun is given too."""
        deadline, rest = time.monotonic() + seconds, b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while selector.select(max(0, deadline - time.monotonic())):
                chunk = os.read(self.process.stdout.fileno(), 65536)
                if not chunk:
                    break
                *whole, rest = (rest + chunk).split(b"\n")
                yield from (line.rstrip(b"\r").decode("utf-8", "replace") for line in whole)
        if rest:
            yield rest.decode("utf-8", "replace")

    def kernel_tail(self):
        with open(self.kernel_log, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()[-KERNEL_LOG_TAIL:]

"""image.py - makes what a machine boots from: Debian's kernel, a small initramfs, and a disk with the programs, the suites and just
enough of this host's /usr to run them.
"""

import glob
import os
import re
import shutil
import subprocess
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TESTS, os.path.join(TESTS, "hostile")]

import corpus  # noqa: E402
from support import guests, harness  # noqa: E402
from support.caisson import need  # noqa: E402

META_PACKAGE = "linux-image-cloud-amd64"
MODULES = ("virtio/virtio_ring", "virtio/virtio", "virtio/virtio_pci_modern_dev", "virtio/virtio_pci_legacy_dev", "virtio/virtio_pci",
           "block/virtio_blk", "block/loop")
DISK_BYTES = 768 << 20

# What the suites and their stories call by name; the libraries come along.
PROGRAMS = ("sh", "dash", "python3", "busybox", "cat", "chown", "date", "dd", "echo", "env", "false", "grep", "head", "id",
            "kill", "ln", "ls", "mkdir", "mkfs.ext4", "mount", "newgidmap", "newuidmap", "nproc", "printf", "rm", "rmdir",
            "sed", "seq", "setpriv", "setsid", "sleep", "sort", "stty", "sync", "tail", "tr", "true", "umount", "unshare", "wc", "yes")
PYTHON_LEFT_OUT = ("config-*", "test", "distutils", "lib2to3", "pydoc_data", "tkinter", "idlelib", "ensurepip")
LINKS = (("bin", "usr/bin"), ("sbin", "usr/sbin"), ("lib", "usr/lib"), ("lib64", "usr/lib64"))
DIRECTORIES = ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "etc", "proc", "sys", "dev", "run", "tmp", "var/tmp", "var/lib", "root", "mnt")
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/shadow": "root:*:19000:0:99999:7:::\n",
    "etc/hosts": "127.0.0.1 localhost\n",
}


def call(*argv, **keywords):
    done = subprocess.run(argv, capture_output=True, text=True, check=False, **keywords)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(argv)}: exit {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def kernel_package():
    """The package that the newest kernel of this kind is in."""
    match = re.search(r"Depends: (linux-image-\S+)", call("apt-cache", "depends", META_PACKAGE))
    if not match:
        raise AssertionError(f"no package {META_PACKAGE} is known here")
    return match.group(1)


def download_kernel(folder):
    call("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", kernel_package(), cwd=folder)


def fetch_kernel(folder):
    """vmlinuz and the modules, unpacked and never installed: installing would make this host an initramfs and a boot entry."""
    place, part = os.path.join(folder, "kernel"), os.path.join(folder, "kernel.part")
    if os.path.isdir(place):
        return place
    shutil.rmtree(part, ignore_errors=True)
    os.mkdir(part)
    try:
        download_kernel(part)
    except AssertionError:  # the lists of packages are absent, or older than the archive
        try:
            call("apt-get", "-q", "update")
            download_kernel(part)
        except AssertionError as error:
            raise harness.Skip(f"the kernel's package cannot be had: {error}") from error
    call("dpkg-deb", "-x", glob.glob(part + "/*.deb")[0], part)
    os.rename(part, place)
    return place


class Tree:
    """A root file system in a directory."""

    def __init__(self, root):
        shutil.rmtree(root, ignore_errors=True)
        self.root = root
        for name in DIRECTORIES:
            os.makedirs(os.path.join(root, name))
        for name, target in LINKS:
            os.symlink(target, os.path.join(root, name))
        for name, text in FILES.items():
            self.write(name, text)
        os.chmod(self.path("etc/shadow"), 0o600)
        for name in ("tmp", "var/tmp"):
            os.chmod(self.path(name), 0o1777)

    def path(self, name):
        return os.path.join(self.root, name.lstrip("/"))

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def copy(self, source, name=None):
        """One file at its own or another place; of a link, the link and what it leads to."""
        target = self.path(name or source)
        if os.path.lexists(target):
            return
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if name is None and os.path.islink(source):
            os.symlink(os.readlink(source), target)
            self.copy(os.path.normpath(os.path.join(os.path.dirname(source), os.readlink(source))))
        else:
            shutil.copy2(source, target)

    def copy_program(self, source, name=None):
        self.copy(source, name)
        for library in libraries(source):
            self.copy(library)

    def copy_folder(self, source, name, *left_out):
        shutil.copytree(source, self.path(name), symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*left_out))


def libraries(path):
    done = subprocess.run(["ldd", path], capture_output=True, text=True, check=False)
    return re.findall(r"(/\S+) \(0x", done.stdout)


def add_python(tree):
    version = call("/usr/bin/python3", "-c", "import sys; print('python%d.%d' % sys.version_info[:2])").strip()
    folder = f"/usr/lib/{version}"
    tree.copy_folder(folder, folder, *PYTHON_LEFT_OUT)
    for extension in glob.glob(f"{folder}/lib-dynload/*.so"):
        for library in libraries(extension):
            tree.copy(library)


def add_guests(tree):
    """The hostile programs, compiled here: the machine has no compiler."""
    for case in corpus.EVERY_CASE:
        if case.program.endswith(".c"):
            tree.copy_program(guests.program(case.program, case.static), guests.place("/caisson/guests", case.program, case.static))


def add_product(tree, build, fault_build):
    for name, folder in (("build", build), ("build-fault", fault_build)):
        for part in ("cli/caisson", "init/caisson-init", "http/caisson-front", "client/caisson-client"):
            tree.copy_program(need(os.path.join(folder, "src", part)), f"/caisson/{name}/{os.path.basename(part)}")
    tree.copy_program(need(os.path.join(build, "tests/contract/contract_linux")), "/caisson/build/contract_linux")
    for part in ("support", "system", "hostile", "vm"):
        tree.copy_folder(os.path.join(TESTS, part), f"/caisson/tests/{part}", "__pycache__")


def make_tree(folder, build, fault_build):
    tree = Tree(os.path.join(folder, "root"))
    for name in PROGRAMS:
        path = shutil.which(name, path="/usr/bin:/usr/sbin")
        if not path:
            raise harness.Skip(f"{name} is not installed here")
        tree.copy_program(path)
    add_python(tree)
    add_guests(tree)
    add_product(tree, build, fault_build)
    call("/usr/bin/python3", "-m", "compileall", "-q", tree.path("/caisson/tests"))
    call("ldconfig", "-r", tree.root)
    return tree


def make_disk(folder, tree):
    disk = os.path.join(folder, "disk.img")
    with open(disk, "wb") as file:
        file.truncate(DISK_BYTES)
    call("mke2fs", "-q", "-F", "-t", "ext4", "-E", "root_owner=0:0,lazy_itable_init=0,lazy_journal_init=0", "-d", tree.root, disk)
    return disk


def make_initramfs(folder, kernel):
    root = os.path.join(folder, "initramfs")
    shutil.rmtree(root, ignore_errors=True)
    for name in ("bin", "dev", "root", "modules"):
        os.makedirs(os.path.join(root, name))
    shutil.copy2("/usr/bin/busybox", os.path.join(root, "bin"))
    shutil.copy2(os.path.join(TESTS, "vm", "guest", "init"), root)
    for number, module in enumerate(MODULES):
        found = glob.glob(f"{kernel}/lib/modules/*/kernel/drivers/{module}.ko")
        shutil.copy2(found[0], os.path.join(root, "modules", f"{number}-{os.path.basename(module)}.ko"))
    archive = os.path.join(folder, "initramfs.cpio")
    names = "\0".join(os.path.relpath(path, root) for path in glob.glob(root + "/**", recursive=True))
    with open(archive, "wb") as out:
        subprocess.run(["cpio", "--quiet", "-0", "-o", "-H", "newc"], cwd=root, input=names.encode(), stdout=out, check=True)
    return archive


class Image:
    """Everything that QEMU needs."""

    def __init__(self, folder, build, fault_build):
        os.makedirs(folder, exist_ok=True)
        place = fetch_kernel(folder)
        self.kernel = glob.glob(place + "/boot/vmlinuz-*")[0]
        self.initramfs = make_initramfs(folder, place)
        self.disk = make_disk(folder, make_tree(folder, build, fault_build))
        self.folder = folder

    def private_disk(self, name):
        """A copy of the disk that a machine may keep something on."""
        disk = os.path.join(self.folder, f"disk-{name}.img")
        call("cp", "--sparse=always", self.disk, disk)
        return disk

"""Attacks on the sandbox: what a page or a skill could talk a model into running.

An attack is a command of /bin/sh or, after `py:`, a program of Python; its exit status 0 means that it succeeded. The
names in {} are places of a `World` outside, which holds secrets, listeners and a process. `outside`: it succeeds where
there is no sandbox, so it is a real attempt; the tests try that.

They are modelled on what advisories of container and agent programs tell: links out of a folder, /proc/self and its
magic links, leaked descriptors, core_pattern, release_agent, sockets of Docker and D-Bus, metadata services, abstract
sockets, vsock, keyrings, ptrace, TIOCSTI, new user name spaces, planted configurations, exhausted machines.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.support.syscall_filter import REFUSED


class Attack(NamedTuple):
    """`harm`: what must not happen."""

    name: str
    command: str
    harm: str
    outside: bool = False


def _each(harm: str, attacks: dict[str, str], *, outside: bool = False) -> tuple[Attack, ...]:
    return tuple(Attack(name, command, harm, outside) for name, command in attacks.items())


_SECRET = "a secret outside is read"
READING = (
    *_each(
        _SECRET,
        {
            "settings": "cat {home}/config.yaml",
            "keys": "cat {home}/.env",
            "store": "cat {home}/legato.db",
            "page link": "cat {home}/legato-home/page-link",
            "another workspace": "cat {other}/note",
            "another workspace, relative": "cat ../other/note",
            "the home, relative": "cat ../../../config.yaml",
            "list of workspaces": "ls .. | grep other",
            "link to the settings": "ln -s {home}/config.yaml l1 && cat l1",
            "link to another workspace": "ln -s {other} l2 && cat l2/note",
            "link upwards": "ln -s ../other l3 && cat l3/note",
            "chain of links": "ln -s {home} l4 && ln -s l4/legato-home l5 && cat l5/page-link",
            "hard link": "ln {home}/config.yaml hard && cat hard",
            "archive of it": "tar cf - {home} 2>/dev/null | grep -a canary",
            "copy of it": "cp {home}/.env stolen && cat stolen",
            "through the root of this process": "cat /proc/self/root{home}/config.yaml",
            "through the working folder of this process": "cat /proc/self/cwd/../other/note",
            "through the root of a process outside": "cat /proc/{pid}/root{home}/config.yaml",
            "through the working folder of a process outside": "cat /proc/{pid}/cwd/.env",
            "through a descriptor of a process outside": "cat /proc/{pid}/fd/3",
            "environment of a process outside": "tr '\\0' '\\n' </proc/{pid}/environ | grep canary",
            "command line of a process outside": "tr '\\0' ' ' </proc/{pid}/cmdline | grep canary",
            "list of processes": "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -a '[c]anary-process'",
            "the machine's /tmp": "cat {tmp}/loot",
            "the machine's name": "grep -q . /etc/hostname",
            "memory of a process outside": "py:open('/proc/{pid}/maps').read()",
        },
        outside=True,
    ),
    *_each(
        _SECRET,
        {
            "through the root of process 1": "cat /proc/1/root{home}/config.yaml",
            "through the working folder of process 1": "cat /proc/1/cwd/../other/note",
            "through the root of any process": "cat /proc/*/root{home}/config.yaml | grep .",
            "environment of process 1": "tr '\\0' '\\n' </proc/1/environ | grep -a canary",
            "environments of all": "cat /proc/*/environ | tr '\\0' '\\n' | grep -a canary",
            "by its name": "find / -name page-link -not -path '/proc/*' 2>/dev/null | grep .",
            "own environment": "env | grep -i -e canary -e key -e token -e legato",
            "shadow": "cat /etc/shadow",
            "group shadow": "cat /etc/gshadow",
            "keys of the machine": "cat /etc/ssh/ssh_host_*_key",
            "private certificates": "ls /etc/ssl/private",
            "names of the machine's users": "grep -e daemon -e www-data -e sync /etc/passwd",
            "identity of the machine": "cat /etc/machine-id /var/lib/dbus/machine-id",
            "home of root": "ls /root",
            "homes": "ls /home",
            "logs": "ls /var/log",
            "states of services": "ls /var/lib",
            "jobs of cron": "ls /var/spool",
            "runtime of services": "ls /run | grep -v -x etc",
            "programs by hand": "ls /opt",
            "data of services": "ls /srv",
            "other disks": "ls /mnt /media",
            "kernel images": "ls /boot",
            "devices of the kernel": "ls /sys/",
            "account of Kubernetes": "cat /var/run/secrets/kubernetes.io/serviceaccount/token",
            "keys of a cloud": "cat /root/.aws/credentials ~/.aws/credentials",
            "keys of SSH": "cat /root/.ssh/* ~/.ssh/*",
            "memory of the machine": "head -c 1 /dev/mem || head -c 1 /dev/kmem || head -c 1 /proc/kcore",
            "log of the kernel, by device": "head -c 1 /dev/kmsg || timeout 1 head -c 1 /proc/kmsg",
            "log of the kernel, by call": "py:assert call('syslog', 3, buffer(4096), 4096) > 0",
            "addresses of the kernel": "grep -v '^0000000000000000' /proc/kallsyms | grep .",
            "block devices": "find /dev -type b | grep .",
            "handle of a file": "py:"
            "import struct\n"
            "at = call('open_by_handle_at', open_('/usr'), struct.pack('IiQ', 8, 1, 2), 0)\n"
            "assert at >= 0",
            "descriptors that were left open": "py:"
            "own = os.open('.', 0)\n"
            "assert [each for each in os.listdir('/proc/self/fd') if int(each) not in (0, 1, 2, own, own + 1)]",
            "descriptors of process 1": "py:"
            "for each in os.listdir('/proc/1/fd'):\n"
            "    if os.path.isdir(f'/proc/1/fd/{each}'): sys.exit(0)\n"
            "sys.exit(1)",
            "standard input": "py:assert os.read(0, 1)",
            "core dumps of others": "ls /var/lib/systemd/coredump /var/crash",
            "history of shells": "cat ~/.bash_history /root/.bash_history",
            "devices of the disk, by number": "ls /dev/disk /dev/mapper",
            "name of the machine": "test $(hostname) != sandbox",
        },
    ),
)

_WRITTEN = "policy, code or the system is written"
WRITING = (
    *_each(
        _WRITTEN,
        {
            "settings": "echo 'access: {allow: [everybody]}' >> {home}/config.yaml",
            "keys": "echo X=1 >> {home}/.env",
            "store": "echo garbage >> {home}/legato.db",
            "settings by a link": "ln -s {home}/config.yaml w1 && echo x >> w1",
            "settings by a link in a copy": "ln -s {home}/config.yaml w2 && cp /etc/passwd w2",
            "memory of someone else": "echo 'they agreed' > {other}/note",
            "memory by a relative path": "echo x > ../other/note",
            "a new workspace": "mkdir ../mine",
            "a skill": "mkdir -p {home}/skills/evil && echo x > {home}/skills/evil/SKILL.md",
            "a plug-in": "mkdir -p {home}/plugins && echo 'import os' > {home}/plugins/evil.py",
            "removal of the store": "rm {home}/legato.db",
            "another name for the page link": "mv {home}/legato-home/page-link {home}/link",
            "rights of the settings": "chmod 666 {home}/config.yaml",
            "time of the settings": "touch {home}/config.yaml",
            "an answer to a question": "echo approved > {home}/legato-home/approvals",
            "the machine's /tmp": "echo x > {tmp}/loot",
            "by the root of a process outside": "echo x > /proc/{pid}/root{home}/config.yaml",
        },
        outside=True,
    ),
    *_each(
        _WRITTEN,
        {
            "store, by SQL": "py:import sqlite3; sqlite3.connect('{home}/legato.db').execute('create table t (x)')",
            "approvals, by SQL": "py:import sqlite3\n"
            "sqlite3.connect('file:{home}/legato.db?mode=rw', uri=True).execute('delete from approvals')",
            "Legato's code": "echo 'import os' >> {code}/__init__.py",
            "Legato's code, another": "echo x > {code}/evil.py",
            "files of the sandbox itself": "echo 'root::0:0::/:/bin/sh' >> {code}/runtime/sandbox_files/passwd",
            "files of the sandbox, where they stand": "echo 'root::0:0::/:/bin/sh' >> /run/etc/passwd",
            "filter of calls": "echo > /run/etc/x86_64.bpf",
            "users": "echo 'evil::0:0::/:/bin/sh' >> /etc/passwd",
            "libraries before all": "echo /workspace/evil.so > /etc/ld.so.preload",
            "jobs of cron": "echo '* * * * * root true' > /etc/cron.d/evil",
            "a crontab": "echo '* * * * * true' | crontab -",
            "a profile": "echo true > /etc/profile.d/evil.sh",
            "a service": "echo x > /etc/systemd/system/evil.service",
            "a program": "echo x > /usr/local/bin/legato",
            "the shell": "cp /bin/true /usr/bin/sh",
            "a library": "touch /usr/lib/evil.so",
            "modules of Python": "py:import sysconfig, pathlib\n"
            "pathlib.Path(sysconfig.get_path('purelib'), 'evil.pth').write_text('x')",
            "names of hosts": "echo '127.0.0.1 api.openai.com' >> /etc/hosts",
            "resolver": "echo nameserver 6.6.6.6 > /etc/resolv.conf",
            "the root": "touch /evil",
            "a folder at the root": "mkdir /evil",
            "devices": "touch /dev/evil",
            "the lent folder that is read-only": "echo x > /folders/read/evil",
            "a file of it": "echo x >> /folders/read/kept",
            "removal of a file of it": "rm /folders/read/kept",
            "a skill that is shown": "echo x > /skills/shown/SKILL.md",
            "a new skill": "mkdir /skills/evil",
            "a new folder that is lent": "mkdir /folders/evil",
            "link in its place": "mv /folders/read /folders/old",
            "the workspace itself": "rmdir /workspace || mv -T /workspace /evil",
            "another owner": "chown 0:0 . && test $(stat -c %u .) = 0",
            "bwrap, as process 1 runs it": "py:os.open('/proc/1/exe', os.O_WRONLY)",
            "this interpreter, as it runs": "py:os.open('/proc/self/exe', os.O_WRONLY)",
            "bwrap, once it is not busy": "py:\n"
            "held = os.open('/proc/1/exe', os.O_PATH)\n"
            "os.open(f'/proc/self/fd/{held}', os.O_WRONLY)",
            "memory of process 1": "py:\n"
            "at = int(open('/proc/1/maps').readline().split('-')[0], 16)\n"
            "os.pwrite(os.open('/proc/1/mem', os.O_WRONLY), b'x', at)",
        },
    ),
)

_OUT = "a name space, mount or privilege is won"
ESCAPES = (
    *_each(
        _OUT,
        {
            "new user name space": "unshare -U true",
            "new user and mount name space": "unshare -Urm true",
            "new mount name space": "unshare -m true",
            "new process name space": "unshare -pf true",
            "new network": "unshare -n true",
            "new IPC": "unshare -i true",
            "new host name": "unshare -u true",
            "new control groups": "unshare -C true",
            "a sandbox in the sandbox": "bwrap --dev-bind / / true",
            "user name space by clone": "py:\n"
            "pid = libc.clone(ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda _: 0), "
            "ctypes.c_void_p(ctypes.addressof(buffer(65536)) + 65536), 0x10000000 | 17, None)\n"
            "assert pid > 0",
            "name spaces of process 1": "nsenter -t 1 -a true",
            "mounts of a process outside": "nsenter -t {pid} -m true",
            "network of a process outside": "nsenter -t {pid} -n true",
            "by its descriptor": "py:assert libc.setns(os.open('/proc/{pid}/ns/net', 0), 0) == 0",
            "mount of memory": "mount -t tmpfs none /tmp",
            "mount of processes": "mkdir -p p && mount -t proc none p",
            "mount of the kernel": "mkdir -p s && mount -t sysfs none s",
            "mount of control groups": "mkdir -p c && mount -t cgroup -o memory none c",
            "mount of control groups, second version": "mkdir -p c2 && mount -t cgroup2 none c2",
            "mount of debugging": "mkdir -p d && mount -t debugfs none d",
            "mount of layers": "mkdir -p l u w m && mount -t overlay -o lowerdir=l,upperdir=u,workdir=w x m",
            "mount in place": "mount --bind / /tmp",
            "the system writable": "mount -o remount,rw /usr || mount -o remount,rw /",
            "processes writable": "mount -o remount,rw /proc",
            "what lies under": "umount /usr || umount -l /proc || umount -l /workspace",
            "mount by a program of its own": "fusermount -u /tmp || fusermount3 -u /tmp",
            "another root": "chroot . true || chroot /proc/1/root true",
            "another root by call": "py:assert libc.chroot(b'/workspace') == 0",
            "pivot": "py:assert call('pivot_root', b'.', b'.') == 0",
            "a tree of mounts": "py:assert call('open_tree', -100, b'/', 1) >= 0",
            "a new file system": "py:assert call('fsopen', b'tmpfs', 0) >= 0",
            "other flags of a mount": "py:assert call('mount_setattr', -100, b'/usr', 0, buffer(32), 32) == 0",
            "a loop device": "losetup -f",
            "a disk device": "mknod sda b 8 0",
            "a memory device": "mknod mem c 1 1",
            "a null device": "mknod null c 1 3",
            "a terminal device": "mknod tty c 4 1",
            "a device by call": "py:os.mknod('dev', 0o60666, os.makedev(254, 0))",
            "a control group": "mkdir /sys/fs/cgroup/evil",
            "agent of a control group": "echo /workspace/evil > /sys/fs/cgroup/release_agent",
            "another control group": "echo 1 > /sys/fs/cgroup/cgroup.procs || echo 1 > /sys/fs/cgroup/pids/tasks",
            "map of users": "echo '0 0 1' > /proc/self/uid_map",
            "groups again": "echo allow > /proc/self/setgroups",
            "handler of core dumps": "echo '|/workspace/evil' > /proc/sys/kernel/core_pattern",
            "handler of core dumps, by a link": "echo '|/workspace/evil' > /proc/1/root/proc/sys/kernel/core_pattern",
            "loader of modules": "echo /workspace/evil > /proc/sys/kernel/modprobe",
            "handler of devices": "echo /workspace/evil > /sys/kernel/uevent_helper",
            "formats of programs": "echo ':e:M::evil::/workspace/evil:' > /proc/sys/fs/binfmt_misc/register",
            "magic keys": "echo h > /proc/sysrq-trigger",
            "address layout": "echo 0 > /proc/sys/kernel/randomize_va_space",
            "number of name spaces": "echo 100 > /proc/sys/user/max_user_namespaces",
            "forwarding": "echo 1 > /proc/sys/net/ipv4/ip_forward",
            "turn in want of memory": "echo -1000 > /proc/self/oom_score_adj",
            "audit": "echo 0 > /proc/self/loginuid",
            "interrupts": "for each in /proc/irq/*/smp_affinity; do echo 1 > $each && exit 0; done; exit 1",
            "root by a bit": "cp /bin/sh rooted && chmod u+s rooted && ./rooted -p -c 'test $(id -u) = 0'",
            "root by sudo": "sudo -n true",
            "root by su": "echo | su -c true",
            "root by a policy": "pkexec true",
            "root by call": "py:os.setuid(0)",
            "group of root by call": "py:os.setgid(0)",
            "groups by call": "py:os.setgroups([0])",
            "capabilities of a file": "cp /bin/sh able && setcap cap_sys_admin+ep able",
            "capabilities": "grep -E 'Cap(Prm|Eff|Bnd|Inh|Amb):' /proc/self/status | grep -v 0000000000000000",
            "capabilities by ambience": "py:assert libc.prctl(47, 2, 21, 0, 0) == 0",
            "new privileges": "grep -v -x 'NoNewPrivs:\\s*1' /proc/self/status | grep NoNewPrivs",
            "new privileges by call": "py:assert libc.prctl(38, 0, 0, 0, 0) == 0",
            "without a filter": "grep -x 'Seccomp:\\s*0' /proc/self/status",
            "calls of 32 bits": "py:\n"
            "import mmap, platform\n"
            "assert platform.machine() == 'x86_64'\n"
            "code = mmap.mmap(-1, 4096, prot=7)\n"
            "code.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3]))\n"
            "ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()",
            "calls of x32": "py:assert libc.syscall(0x40000000 + 39) > 0",
            "a higher limit of processes": "prlimit --nproc=100000:100000 true",
            "a higher limit of files": "prlimit --fsize=unlimited:unlimited true",
            "a higher limit of memory": "prlimit --data=unlimited:unlimited true",
            "a higher limit of time": "prlimit --cpu=unlimited:unlimited true",
            "core dumps": "prlimit --core=unlimited:unlimited true",
            "a better turn": "py:os.nice(-10)",
            "a turn before all": "chrt -f 50 true",
            "another clock": "date -s 2000-01-01",
            "another clock by call": "py:import time; time.clock_settime(0, 0)",
            "another host name": "hostname evil",
            "another domain": "domainname evil",
            "swap": "dd if=/dev/zero of=swap bs=1M count=1 2>/dev/null && mkswap swap && swapon swap",
            "accounting": "py:assert libc.acct(b'/workspace/acct') == 0",
            "the keys of the machine's owner": "py:assert libc.reboot(0) == 0",
            "modules": "modprobe loop || insmod x.ko",
            "a module by call": "py:assert libc.syscall(175 if x86 else 105, buffer(16), 16, b'') == 0",
            "ports of the machine": "py:assert x86 and libc.iopl(3) == 0",
            "keystrokes for the terminal": "py:\n"
            "import fcntl, termios\n"
            "fcntl.ioctl(os.open('/dev/tty', os.O_RDWR), termios.TIOCSTI, b'x')",
            "keystrokes on standard streams": "py:\n"
            "import fcntl, termios\n"
            "[fcntl.ioctl(each, termios.TIOCSTI, b'x') for each in (0, 1, 2)]",
            "the console": "echo x > /dev/console",
            "terminals of others": "ls /dev/pts | grep [0-9] && echo x > /dev/pts/0",
        },
    ),
    *(
        Attack(f"call {name}", f"py:assert call('{name}', 0, 0, 0, 0, 0) != -1 or errno() != 38", _OUT)
        for name in REFUSED
    ),
)

_REACHED = "a process, socket or key outside is reached"
REACHING = (
    *_each(
        _REACHED,
        {
            "loopback": "py:connect(2, ('127.0.0.1', {tcp}))",
            "loopback by another address": "py:connect(2, ('127.1.2.3', {tcp}))",
            "loopback by no address": "py:connect(2, ('0.0.0.0', {tcp}))",
            "loopback by name": "py:connect(2, ('localhost', {tcp}))",
            "packets to loopback": "py:assert answered(('127.0.0.1', {udp}))",
            "a socket by its path": "py:connect(1, '{socket}')",
            "a socket where Docker, containerd and D-Bus have theirs": "py:connect(1, '{bus}')",
            "a socket where agents for keys and screens have theirs": "py:connect(1, '{agent}')",
            "a socket by a link": "py:\nos.path.lexists('s1') or os.symlink('{socket}', 's1')\nconnect(1, 's1')",
            "an abstract socket": "py:connect(1, '\\0{abstract}')",
            "names of abstract sockets": "grep {abstract} /proc/net/unix",
            "list of connections": "grep -i :$(printf %04X {tcp}) /proc/net/tcp",
            "end of a process": "kill -0 {pid}",
            "descriptor of a process": "py:os.pidfd_open({pid})",
            "limits of a process": "prlimit --pid {pid} --nofile",
            "turn of a process": "py:os.sched_getaffinity({pid})",
        },
        outside=True,
    ),
    *_each(
        _REACHED,
        {
            "loopback of IPv6": "py:connect(10, ('::1', {tcp6}))",
            "loopback in IPv6": "py:connect(10, ('::ffff:127.0.0.1', {tcp}))",
            "trace of a process": "py:assert libc.ptrace(16, {pid}, 0, 0) == 0 and [libc.ptrace(17, {pid}, 0, 0)]",
            "memory of a process": "py:os.close(os.open('/proc/{pid}/mem', os.O_RDONLY))",
            "another interface": "ls /sys/class/net || tail -n +3 /proc/net/dev | grep -v ' lo:'",
            "routes": "tail -n +2 /proc/net/route | grep .",
            "this machine by its address": "py:connect(2, ('{address}', {tcp}))",
            "a cloud's metadata": "py:connect(2, ('169.254.169.254', 80))",
            "a cloud's metadata in IPv6": "py:connect(10, ('fd00:ec2::254', 80))",
            "the Internet": "py:connect(2, ('1.1.1.1', 443))",
            "packets to the Internet": "py:import socket; socket.socket(2, 2).sendto(b'x', ('8.8.8.8', 53))",
            "a broadcast": "py:\n"
            "import socket\n"
            "s = socket.socket(2, 2); s.setsockopt(1, 6, 1); s.sendto(b'x', ('255.255.255.255', 9))",
            "names": "getent hosts example.com",
            "raw packets": "py:import socket; socket.socket(2, 3, 1)",
            "frames": "py:import socket; socket.socket(17, 3, 3)",
            "echoes": "ping -c 1 -W 1 127.0.0.2 && ping -c 1 -W 1 {address}",
            "a new interface": "ip link add evil type dummy",
            "an address": "ip addr add 10.0.0.1/8 dev lo",
            "a tunnel": "py:os.open('/dev/net/tun', os.O_RDWR)",
            "a virtual machine's host": "py:import socket; socket.socket(40, 1)",
            "a virtual machine's host, device": "py:os.open('/dev/vsock', os.O_RDWR)",
            "the hypervisor": "py:os.open('/dev/kvm', os.O_RDWR)",
            "ciphers of the kernel": "py:import socket; socket.socket(38, 5)",
            "bluetooth": "py:import socket; socket.socket(31, 3, 0)",
            "fields of a car": "py:import socket; socket.socket(29, 3, 1)",
            "TIPC": "py:import socket; socket.socket(30, 1)",
            "audit by netlink": "py:\n"
            "import socket\n"
            "s = socket.socket(16, 3, 9); s.bind((0, 0)); s.settimeout(1)\n"
            "s.send(bytes([16, 0, 0, 0, 232, 3, 5, 0]) + bytes(8))\n"
            "assert int.from_bytes(s.recv(99)[16:20], 'little', signed=True) == 0",
            "docker": "py:connect(1, '/var/run/docker.sock')",
            "containerd": "py:connect(1, '/run/containerd/containerd.sock')",
            "podman": "py:connect(1, '/run/podman/podman.sock')",
            "D-Bus of the system": "py:connect(1, '/run/dbus/system_bus_socket')",
            "D-Bus of a session": "py:connect(1, '/run/user/{uid}/bus')",
            "D-Bus by its tools": "dbus-send --system --print-reply --dest=org.freedesktop.DBus / x.y || busctl list",
            "systemd": "systemctl list-units || systemd-run true",
            "the journal": "py:connect(1, '/run/systemd/journal/stdout')",
            "the log": "py:import socket; socket.socket(1, 2).connect('/dev/log')",
            "names by a service": "py:connect(1, '/run/nscd/socket')",
            "names by systemd": "py:connect(1, '/run/systemd/resolve/io.systemd.Resolve')",
            "a screen": "py:connect(1, '/tmp/.X11-unix/X0')",
            "a screen, abstract": "py:connect(1, '\\0/tmp/.X11-unix/X0')",
            "an agent for keys": 'test -n "$SSH_AUTH_SOCK$GPG_AGENT_INFO$DBUS_SESSION_BUS_ADDRESS"',
            "the machine's shared memory": "ls /dev/shm | grep .",
            "shared memory of System V": "ipcs -m | grep 0x",
            "a message queue": "ls /dev/mqueue | grep .",
            "keys of the session": "py:\n"
            "key = call('keyctl', 10, -3, b'user', b'legato-canary', 0)\n"
            "assert call('keyctl', 11, key, buffer(64), 64) > 0",
            "keys of the user": "py:assert call('keyctl', 10, -4, b'user', b'legato-canary', 0) > 0",
            "a new key": "py:assert call('add_key', b'user', b'evil', b'x', 1, -4) > 0",
            "list of keys": "grep legato-canary /proc/keys",
            "all processes": "py:\nimport signal\nsignal.signal(15, signal.SIG_IGN)\nos.kill({pid}, 15)",
            "vector of another process": "py:\n"
            "class Part(ctypes.Structure): _fields_ = (('at', ctypes.c_void_p), ('size', ctypes.c_size_t))\n"
            "own = buffer(8)\n"
            "one, two = Part(ctypes.addressof(own), 8), Part(4096, 8)\n"
            "libc.process_vm_readv({pid}, ctypes.byref(one), 1, ctypes.byref(two), 1, 0)\n"
            "assert errno() != 3",
        },
    ),
)

ATTACKS = {"reading": READING, "writing": WRITING, "escapes": ESCAPES, "reaching": REACHING}

# Runs the attacks of a file, each in a process of its own, some at once. It is itself run in the sandbox.
DRIVER = """
import concurrent.futures, json, os, subprocess, sys
attacks, seen, seconds, at_once = sys.argv[1:]
wide = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
def run(attack):
    words = ["sh", "-c", attack[1]]
    if attack[1].startswith("py:"):
        words = ["python3", "-c", "from attacks_kit import *\\n" + attack[1][3:].strip()]
    try:
        ended = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=float(seconds), env=wide)
    except subprocess.TimeoutExpired:
        return attack[0], [-1, "it took too long"]
    return attack[0], [ended.returncode, (ended.stdout + ended.stderr)[-2000:].decode("utf-8", "replace")]
with concurrent.futures.ThreadPoolExecutor(int(at_once)) as pool:
    json.dump(dict(pool.map(run, json.load(open(attacks)))), open(seen, "w"))
"""

KIT = f"""
import ctypes, os, platform, socket as _socket, sys
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == "x86_64"
_CALLS = {REFUSED!r}

def call(name, *arguments):
    return libc.syscall(_CALLS[name][0 if x86 else 1], *arguments)

def errno():
    return ctypes.get_errno()

def buffer(size):
    return ctypes.create_string_buffer(size)

def open_(path):
    return os.open(path, os.O_RDONLY)

def connect(family, address):
    with _socket.socket(family, _socket.SOCK_STREAM) as each:
        each.settimeout(2)
        each.connect(address)

def answered(address):
    with _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM) as each:
        each.settimeout(1)
        each.sendto(b"x", address)
        return each.recv(9)
"""

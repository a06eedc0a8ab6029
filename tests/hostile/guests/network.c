/* network.c - H61, H92, H95: tries to reach something outside, `network HOW …`.
 *
 * reach PORT ABSTRACT PATH [LAN]: the test's own listeners, and (with LAN) addresses and protocols beyond them. pass ABSTRACT PATH:
 * hands its descriptors over to whoever listens. own: its own loopback. serve PORT: listens on its own loopback for ever. brokers:
 * the sockets of the usual services. */
#include <arpa/inet.h>
#include <linux/if_alg.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "probe.h"

static long try_ipv4(const char *address, int port, int type)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct timeval wait = {.tv_sec = 1};
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	inet_pton(AF_INET, address, &to.sin_addr);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0)
		return -1;
	return type == SOCK_DGRAM ? send(fd, "x", 1, 0) : 0;
}

static long try_ipv6(int port)
{
	struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&to, sizeof(to));
}

/* A name that begins with '@' is abstract. Returns the connected socket. */
static int try_unix(const char *name)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	snprintf(to.sun_path, sizeof(to.sun_path), "%s", name);
	socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(to.sun_path));

	if (name[0] == '@')
		to.sun_path[0] = '\0';
	return connect(fd, (struct sockaddr *)&to, length) == 0 ? fd : -1;
}

static long try_vsock(void)
{
	struct sockaddr_vm to = {.svm_family = AF_VSOCK, .svm_port = 1, .svm_cid = VMADDR_CID_HOST};
	int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&to, sizeof(to));
}

/* What makes the kernel load a module for whoever asks. */
static void reach_for_modules(void)
{
	unsigned long nothing[4] = {0};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	PROBE("module.sctp", socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
	PROBE("module.sctp6", socket(AF_INET6, SOCK_SEQPACKET, IPPROTO_SCTP));
	PROBE("module.dccp", socket(AF_INET, SOCK_DCCP, 0));
	PROBE("module.bridge", ioctl(fd, SIOCGIFBR, nothing));
	PROBE("module.8021q", ioctl(fd, SIOCGIFVLAN, nothing));
}

static void reach_beyond(const char *lan)
{
	PROBE("tcp.lan", try_ipv4(lan, 22, SOCK_STREAM));
	PROBE("tcp.metadata", try_ipv4("169.254.169.254", 80, SOCK_STREAM));
	PROBE("udp.dns", try_ipv4("192.0.2.53", 53, SOCK_DGRAM));
	PROBE("udp.lan", try_ipv4(lan, 53, SOCK_DGRAM));
	PROBE("raw", socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
	PROBE("ping", socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP) < 0 ? -1 : try_ipv4(lan, 0, SOCK_DGRAM));
	PROBE("packet", socket(AF_PACKET, SOCK_RAW, 0));
	PROBE("netlink.route", socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
	PROBE("netlink.audit", socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT));
	PROBE("vsock", try_vsock());
	PROBE("alg", socket(AF_ALG, SOCK_SEQPACKET, 0));
	PROBE("xdp", socket(44 /* AF_XDP */, SOCK_RAW, 0));
	PROBE("bluetooth", socket(31 /* AF_BLUETOOTH */, SOCK_RAW, 0));
	PROBE("tipc", socket(30 /* AF_TIPC */, SOCK_SEQPACKET, 0));
	reach_for_modules();
}

static void reach(int argc, char **argv)
{
	int port = (int)strtol(argv[2], NULL, 10);

	PROBE("tcp.loopback", try_ipv4("127.0.0.1", port, SOCK_STREAM));
	PROBE("tcp.any", try_ipv4("0.0.0.0", port, SOCK_STREAM));
	PROBE("tcp6.loopback", try_ipv6(port));
	PROBE("unix.abstract", try_unix(argv[3]));
	PROBE("unix.path", try_unix(argv[4]));
	if (argc > 5)
		reach_beyond(argv[5]);
}

static int listen_on(int port, struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(*at);

	*at = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
	if (fd < 0 || bind(fd, (struct sockaddr *)at, size) != 0 || listen(fd, 8) != 0)
		die("listen");
	if (getsockname(fd, (struct sockaddr *)at, &size) != 0)
		die("getsockname");
	return fd;
}

static void own_loopback(void)
{
	struct sockaddr_in at;
	int server = listen_on(0, &at), client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char text[3] = {0};

	PROBE("own.connect", connect(client, (struct sockaddr *)&at, sizeof(at)));
	int accepted = accept(server, NULL, NULL);

	if (accepted < 0 || write(accepted, "hi", 2) != 2 || read(client, text, 2) != 2)
		die("loopback");
	printf("own.said=%s\n", text);
}

static void serve(int port)
{
	struct sockaddr_in at;
	int server = listen_on(port, &at);

	printf("serving\n");
	fflush(stdout);
	for (;;)
		close(accept(server, NULL, NULL));
}

static void pass_to(const char *label, const char *name)
{
	int fds[2] = {0, 1}, to = try_unix(name);
	char byte = 0, control[CMSG_SPACE(sizeof(fds))] = {0};
	struct iovec part = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	*header = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(fds))};
	memcpy(CMSG_DATA(header), fds, sizeof(fds));
	PROBE(label, to < 0 ? -1 : sendmsg(to, &message, 0));
}

static void brokers(void)
{
	static const char *const names[] = {
		"/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/var/run/dbus/system_bus_socket",
		"/run/dbus/system_bus_socket", "/run/systemd/private", "/run/systemd/notify",
		"/run/systemd/journal/socket", "/dev/log",
		"/run/user/0/bus", "/run/user/1000/bus", "/tmp/.X11-unix/X0", "/run/podman/podman.sock", "/var/run/crio/crio.sock",
		"/run/caisson.sock", "/run/caisson/caisson.sock", "/var/run/nscd/socket", "@/tmp/.X11-unix/X0", "@/tmp/dbus",
		"@/containerd-shim",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		PROBE(names[i], try_unix(names[i]));
	printf("SSH_AUTH_SOCK=%s\n", getenv("SSH_AUTH_SOCK") ? "set" : "unset");
	printf("DBUS_SESSION_BUS_ADDRESS=%s\n", getenv("DBUS_SESSION_BUS_ADDRESS") ? "set" : "unset");
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "own";

	if (strcmp(how, "reach") == 0 && argc > 4)
		reach(argc, argv);
	else if (strcmp(how, "pass") == 0 && argc > 3) {
		pass_to("pass.abstract", argv[2]);
		pass_to("pass.path", argv[3]);
	} else if (strcmp(how, "serve") == 0 && argc > 2)
		serve((int)strtol(argv[2], NULL, 10));
	else if (strcmp(how, "brokers") == 0)
		brokers();
	else
		own_loopback();
	return 0;
}

/* The guest of the platform blackbox: it boots, takes the address that it is told, and answers. No shell, no agent.
 *
 * It stands for a unikernel: all that is known of it from outside is what it answers: UDP and TCP echo on port 7,
 * and HTTP on port 80. It is /init of an initramfs and loads the modules in /modules/order.
 * The kernel hands on what it does not know itself as environment: box_ip, box_prefix, box_gateway.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ECHO_PORT = 7, HTTP_PORT = 80, CONNECTIONS = 64, BUFFER = 65536 };
enum { UDP, TCP, HTTP, FIRST };

static const char PAGE[] = "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 19\r\n"
                           "Connection: close\r\n\r\nhello from the box\n";

static struct pollfd watched[FIRST + CONNECTIONS];
static struct {
    int http;
    size_t got;  /* of an HTTP request */
    char end[4]; /* its last bytes */
} kept[FIRST + CONNECTIONS];
static char buffer[BUFFER];

static void give_up(const char *what)
{
    printf("blackbox: %s: %s\n", what, strerror(errno));
    fflush(stdout);
    reboot(RB_AUTOBOOT); /* which ends the machine; not all have a power switch */
    for (;;)
        pause();
}

static void load_modules(void)
{
    char line[256];
    FILE *order = fopen("/modules/order", "r");
    if (!order)
        give_up("/modules/order");
    while (fgets(line, sizeof line, order)) {
        char path[300];
        line[strcspn(line, "\n")] = 0;
        snprintf(path, sizeof path, "/modules/%s.ko", line);
        int file = open(path, O_RDONLY);
        if (file < 0 || (syscall(SYS_finit_module, file, "", 0) && errno != EEXIST))
            give_up(path);
        close(file);
    }
    fclose(order);
}

static struct sockaddr_in address_of(const char *text, unsigned short port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (text && inet_pton(AF_INET, text, &address.sin_addr) != 1)
        give_up(text);
    return address;
}

static void set_address(int by, const char *link, unsigned long what, struct sockaddr_in address)
{
    struct ifreq request = {0};
    strncpy(request.ifr_name, link, IFNAMSIZ - 1);
    memcpy(&request.ifr_addr, &address, sizeof address);
    if (ioctl(by, what, &request))
        give_up("the address cannot be set");
}

static void up(int by, const char *link)
{
    struct ifreq request = {0};
    strncpy(request.ifr_name, link, IFNAMSIZ - 1);
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    if (ioctl(by, SIOCSIFFLAGS, &request))
        give_up("the link does not come up");
}

static void configure(void)
{
    const char *ip = getenv("box_ip"), *prefix = getenv("box_prefix"), *gateway = getenv("box_gateway");
    int by = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq request = {0};
    if (!ip || !prefix)
        give_up("box_ip and box_prefix are not on the command line");
    strcpy(request.ifr_name, "eth0");
    for (int tries = 0; ioctl(by, SIOCGIFINDEX, &request); tries++) {
        if (tries > 10000)
            give_up("eth0");
        usleep(1000); /* the card comes up in the background */
    }
    struct sockaddr_in mask = address_of(NULL, 0);
    mask.sin_addr.s_addr = htonl(~0ull << (32 - atoi(prefix)) & 0xffffffff);
    set_address(by, "eth0", SIOCSIFADDR, address_of(ip, 0));
    set_address(by, "eth0", SIOCSIFNETMASK, mask);
    up(by, "lo");
    up(by, "eth0");
    if (gateway) {
        struct rtentry route = {.rt_flags = RTF_UP | RTF_GATEWAY};
        struct sockaddr_in to = address_of(gateway, 0), all = address_of(NULL, 0);
        memcpy(&route.rt_gateway, &to, sizeof to);
        memcpy(&route.rt_dst, &all, sizeof all);
        memcpy(&route.rt_genmask, &all, sizeof all);
        if (ioctl(by, SIOCADDRT, &route))
            give_up("the gateway cannot be set");
    }
    close(by);
}

static void serve_on(int place, int kind, unsigned short port)
{
    int one = 1, made = socket(AF_INET, kind | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = address_of(NULL, port);
    setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(made, (struct sockaddr *)&address, sizeof address) || (kind == SOCK_STREAM && listen(made, 64)))
        give_up("a port cannot be bound");
    watched[place] = (struct pollfd){.fd = made, .events = POLLIN};
}

static void echo_datagrams(int by)
{
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    ssize_t got;
    while ((got = recvfrom(by, buffer, sizeof buffer, 0, (struct sockaddr *)&from, &size)) >= 0) {
        sendto(by, buffer, (size_t)got, 0, (struct sockaddr *)&from, size);
        size = sizeof from;
    }
}

static void take(int listener, int http)
{
    int one = 1, made = accept4(listener, NULL, NULL, 0);
    if (made < 0)
        return;
    setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    for (int place = FIRST; place < FIRST + CONNECTIONS; place++)
        if (watched[place].fd < 0) {
            watched[place] = (struct pollfd){.fd = made, .events = POLLIN};
            memset(&kept[place], 0, sizeof kept[place]);
            kept[place].http = http;
            return;
        }
    close(made); /* one too many */
}

static int all_sent(int to, const char *data, size_t left)
{
    while (left) {
        ssize_t sent = send(to, data, left, MSG_NOSIGNAL);
        if (sent <= 0)
            return 0;
        data += sent;
        left -= (size_t)sent;
    }
    return 1;
}

/* Whether the connection stays. */
static int hear(int place)
{
    int from = watched[place].fd;
    ssize_t got = recv(from, buffer, sizeof buffer, 0);
    if (got <= 0)
        return 0;
    if (!kept[place].http)
        return all_sent(from, buffer, (size_t)got);
    for (ssize_t at = 0; at < got; at++) {
        memmove(kept[place].end, kept[place].end + 1, 3);
        kept[place].end[3] = buffer[at];
        if (!memcmp(kept[place].end, "\r\n\r\n", 4)) {
            all_sent(from, PAGE, sizeof PAGE - 1);
            return 0;
        }
    }
    kept[place].got += (size_t)got;
    return kept[place].got < BUFFER;
}

int main(void)
{
    load_modules();
    configure();
    for (int place = 0; place < FIRST + CONNECTIONS; place++)
        watched[place].fd = -1;
    serve_on(UDP, SOCK_DGRAM, ECHO_PORT);
    serve_on(TCP, SOCK_STREAM, ECHO_PORT);
    serve_on(HTTP, SOCK_STREAM, HTTP_PORT);
    printf("blackbox: in service\n");
    fflush(stdout);
    for (;;) {
        if (poll(watched, FIRST + CONNECTIONS, -1) < 0)
            give_up("poll");
        if (watched[UDP].revents)
            echo_datagrams(watched[UDP].fd);
        for (int place = FIRST; place < FIRST + CONNECTIONS; place++)
            if (watched[place].fd >= 0 && watched[place].revents && !hear(place)) {
                close(watched[place].fd);
                watched[place].fd = -1;
            }
        if (watched[TCP].revents)
            take(watched[TCP].fd, 0);
        if (watched[HTTP].revents)
            take(watched[HTTP].fd, 1);
    }
}

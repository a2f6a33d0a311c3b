/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * The shims of real hosts' agents (tidegate.hosts.shims). Which shims a host has is data in a map, so that one program
 * serves all hosts of a lab. `real_agents` loads it, has the other ends of the maps, and repeats the layouts below.
 *
 * - `leaving` and `came` stand at the egress and the ingress of a host's interface. They write IPv4 options, read all
 *   options, and drop packets whose options have a wrong length.
 * - `sockets` hears of a host's connections, and has TCP write TCP options.
 * - `limits_set` goes through the connections of a host, and sets limits that have changed.
 *
 * Only the connections of flows are seen: user space puts them into `connections` before they begin.
 */
#include "packets.h"
#include "signal.h"
#include "siphash.h"

/* Of one host. */
#define SHIMS 16
/* An option's kind, length and data. */
#define OPTION 40
#define HEAD 2
#define WORDS (OPTION / 8)
#define CONNECTIONS 16384
#define AGENTS 4096
#define ROOM 60

enum what { INSERT, CLOCK, ECHO, REPORT, SIGNAL, GONE, CHECK };
enum place { IP, TCP };
enum kind { SYN_KIND, SYN_ACK_KIND, DATA_KIND, ACK_KIND, UDP_KIND };
enum news { OPENED, ESTABLISHED, CLOSED, REPORTED };
enum stage { UNKNOWN_STAGE, OPENED_STAGE, ESTABLISHED_STAGE, CLOSED_STAGE };

struct shim {
	/* Number of its agent in the run. */
	u32 agent;
	u8 what;
	/* The option that it writes, or of a reading shim reads. */
	u8 place, option_kind;
	/* Bits of `enum kind`. */
	u8 on;
	/* Of the option that it writes; of an echo: at most. */
	u8 length;
	u8 read_place, read_kind, keep_max;
	/* Of a report: packets whose first byte of data, masked, is this value do not come to TCP. */
	u8 consumes, consume_mask, consume_value;
	union {
		/* Of a report: tells of each option, not only of one that differs. */
		u8 each;
		/* Of an insert: a connection's first packet alone has the option. */
		u8 once;
	};
	/* Of a check: the two keys, and the number of that which checks are made with. */
	u64 option[WORDS];
};

struct host {
	/* Its network namespace. */
	u64 cookie;
	u32 shims, writes_tcp;
	struct shim shim[SHIMS];
};

struct key {
	/* In network order. */
	u32 local, remote;
	u16 local_port, remote_port;
};

/* An option that has come; `length` is 0 until then. `changes` counts what it was replaced by. */
struct kept {
	u32 length, changes;
	u64 option[WORDS];
};

struct connection {
	u32 number, stage;
	/* The limits that are set. */
	u32 pace, cwnd;
	struct bpf_spin_lock lock;
	/* Of TCP: the sequence number behind what was sent last, what was acknowledged last, and the window that was offered with that. */
	u32 sent_end, sent_ack;
	u32 window;
	/* This end opened it. */
	u32 active;
	u32 sent_fin;
	struct kept kept[SHIMS];
};

/* What a connection is to be limited to; 0: not at all. Bytes/s and packets. */
struct limit {
	u32 pace, cwnd;
};

struct run {
	/* When it began, in nanoseconds of the monotonic clock. */
	u64 origin;
};

struct count {
	u64 no_room, refused;
};

/* To user space. */
struct news_record {
	u64 time;
	u32 connection, agent;
	u8 what, option_kind, length, unused[5];
	u64 option[WORDS];
};

/* By address. */
struct {
	UINT(type, HASH);
	UINT(max_entries, 1024);
	TYPE(key, u32);
	TYPE(value, struct host);
} hosts SECTION(".maps");

struct {
	UINT(type, HASH);
	UINT(map_flags, NO_PREALLOC);
	UINT(max_entries, CONNECTIONS);
	TYPE(key, struct key);
	TYPE(value, struct connection);
} connections SECTION(".maps");

/* By a connection's number. */
struct {
	UINT(type, ARRAY);
	UINT(max_entries, CONNECTIONS);
	TYPE(key, u32);
	TYPE(value, struct limit);
} limits SECTION(".maps");

/* By an agent's number. */
struct {
	UINT(type, ARRAY);
	UINT(max_entries, AGENTS);
	TYPE(key, u32);
	TYPE(value, struct count);
} counts SECTION(".maps");

struct {
	UINT(type, ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct run);
} runs SECTION(".maps");

/* News that found no place in the ring. */
struct {
	UINT(type, ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, u64);
} lost SECTION(".maps");

struct {
	UINT(type, RING);
	/* The loader gives it another. */
	UINT(max_entries, 4096);
} news SECTION(".maps");

/* The options that are put on one packet, and what a copy of a whole option reaches beyond. */
struct written {
	u8 bytes[128];
	/* By shim: what `kept.changes` of its option was. */
	u32 changes[SHIMS];
};

struct {
	UINT(type, PER_CPU_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct written);
} scratch SECTION(".maps");

#define PROTOCOL_UDP 17
#define TCP_BPF_SNDCWND_CLAMP 1002
#define UNCLAMPED 0x7fffffff
#define STATE_FLAG (1 << 2)
#define WRITE_FLAG (1 << 6)
#define FOR_MSS 1
#define TCP_LISTEN 10

/* Shows the kernel's verifier that a length is below 64: the compiler would leave out what it knows. */
#define BOUNDED(length) ({ asm volatile("" : "+r"(length)); length &= 63; })
#define PADDED(length) (((length) + 3) & ~3u)

ALWAYS_INLINE struct run *this_run(void)
{
	u32 first = 0;

	return bpf_map_lookup_elem(&runs, &first);
}

ALWAYS_INLINE void tell(u32 connection, u32 agent, u8 what, u8 kind, u32 length, const u64 *option)
{
	struct news_record *record = bpf_ringbuf_reserve(&news, sizeof(*record), 0);

	if (!record) {
		u32 first = 0;
		u64 *count = bpf_map_lookup_elem(&lost, &first);

		if (count)
			__sync_fetch_and_add(count, 1);
		return;
	}
	record->time = bpf_ktime_get_ns();
	record->connection = connection;
	record->agent = agent;
	record->what = what;
	record->option_kind = kind;
	record->length = length;
	for (int word = 0; word < WORDS; word++)
		record->option[word] = option ? option[word] : 0;
	bpf_ringbuf_submit(record, 0);
}

ALWAYS_INLINE void no_room(u32 agent)
{
	struct count *count = bpf_map_lookup_elem(&counts, &agent);

	if (count)
		__sync_fetch_and_add(&count->no_room, 1);
}

ALWAYS_INLINE void refuse(u32 agent)
{
	struct count *count = bpf_map_lookup_elem(&counts, &agent);

	if (count)
		__sync_fetch_and_add(&count->refused, 1);
}

/* Options as they come. Those from `begin` on are looked at. */
struct options {
	u32 length, begin;
	u8 bytes[68];
};

#define NOT_THERE (-1)
#define MALFORMED (-2)
#define NO_KIND 256

/* Where the first option of a kind begins. */
__attribute__((noinline)) int find(struct options *options, u32 kind)
{
	u32 at;

	if (!options)
		return NOT_THERE;
	at = options->begin;
	for (int step = 0; step < OPTION; step++) {
		u32 length, here;

		if (at >= options->length || at >= OPTION)
			return NOT_THERE;
		BOUNDED(at);
		here = options->bytes[at];
		if (here == 0)
			return NOT_THERE;
		if (here == 1) {
			at++;
			continue;
		}
		length = options->bytes[at + 1];
		if (at + 1 >= options->length || length < HEAD || at + length > options->length)
			return MALFORMED;
		if (here == kind)
			return at;
		at += length;
	}
	return NOT_THERE;
}

/* The options behind a header's fixed part of 20 bytes. */
ALWAYS_INLINE int load_options(struct packet *skb, struct options *options, u32 at, u32 header)
{
	u32 length = header - 20;

	__builtin_memset(options, 0, sizeof(*options));
	if (header <= 20)
		return 0;
	if (length > OPTION)
		return -1;
	BOUNDED(length);
	if (!length)
		return -1;
	options->length = length;
	return bpf_skb_load_bytes(skb, at + 20, options->bytes, length);
}

/* A packet of a host, as far as it is of interest. */
struct seen {
	struct ip_header ip;
	struct tcp_header tcp;
	u32 ip_length, tcp_length;
	u8 kind;
};

/* Kinds of packets; gives whether it is one that shims see. */
ALWAYS_INLINE int look(struct packet *skb, struct seen *seen)
{
	u32 headers;

	if (skb->protocol != NETWORK16(ETHERTYPE_IPV4))
		return 0;
	if (bpf_skb_load_bytes(skb, ETHERNET, &seen->ip, sizeof(seen->ip)))
		return 0;
	seen->ip_length = (seen->ip.version_length & 15) * 4;
	if (seen->ip_length < 20 || seen->ip.fragment & NETWORK16(FRAGMENT_OFFSET))
		return 0;
	seen->tcp_length = 0;
	if (seen->ip.protocol == PROTOCOL_UDP) {
		seen->kind = UDP_KIND;
		return 1;
	}
	if (seen->ip.protocol != PROTOCOL_TCP)
		return 0;
	if (bpf_skb_load_bytes(skb, ETHERNET + seen->ip_length, &seen->tcp, sizeof(seen->tcp)))
		return 0;
	seen->tcp_length = (seen->tcp.offset >> 4) * 4;
	headers = seen->ip_length + seen->tcp_length;
	if (seen->tcp.flags & SYN)
		seen->kind = seen->tcp.flags & ACK ? SYN_ACK_KIND : SYN_KIND;
	else
		seen->kind = NETWORK16(seen->ip.length) > headers ? DATA_KIND : ACK_KIND;
	return seen->tcp_length >= 20;
}

/* The sequence number behind a TCP segment. */
ALWAYS_INLINE u32 end_of(struct packet *skb, const struct seen *seen)
{
	u32 payload = skb->len - ETHERNET - seen->ip_length - seen->tcp_length;

	return __builtin_bswap32(seen->tcp.seq) + payload + !!(seen->tcp.flags & SYN) + !!(seen->tcp.flags & FIN);
}

ALWAYS_INLINE struct connection *connection_of(u32 local, u32 remote, u16 local_port, u16 remote_port)
{
	struct key key = {local, remote, local_port, remote_port};

	return bpf_map_lookup_elem(&connections, &key);
}

/* The option that a shim is to write now, and what `kept.changes` of it is; gives its length, 0: none. */
ALWAYS_INLINE u32 to_write(const struct shim *shim, struct connection *c, u32 index, u64 *option, u32 *changes)
{
	*changes = 0;
	if (shim->what == ECHO) {
		u32 length;

		if (!c || index >= SHIMS)
			return 0;
		bpf_spin_lock(&c->lock);
		length = c->kept[index].length;
		*changes = c->kept[index].changes;
		for (int word = 0; word < WORDS; word++)
			option[word] = c->kept[index].option[word];
		bpf_spin_unlock(&c->lock);
		if (!length)
			return 0;
		((u8 *)option)[0] = shim->option_kind;
		return length;
	}
	for (int word = 0; word < WORDS; word++)
		option[word] = shim->option[word];
	if (shim->what == CLOCK) {
		struct run *run = this_run();
		u64 now = __builtin_bswap64(run ? bpf_ktime_get_ns() - run->origin : 0);

		option[0] |= now << 16;
		option[1] = now >> 48;
	}
	return shim->length;
}

ALWAYS_INLINE int writes(const struct shim *shim, u8 place, u32 kind)
{
	return shim->what <= ECHO && shim->place == place && shim->on >> kind & 1;
}

/* A largest value that was echoed is not echoed again. A larger one that has come meanwhile still is. */
ALWAYS_INLINE void echoed(const struct shim *shim, struct connection *c, u32 index, u32 changes)
{
	if (c && shim->what == ECHO && shim->keep_max && index < SHIMS) {
		bpf_spin_lock(&c->lock);
		if (c->kept[index].changes == changes)
			c->kept[index].length = 0;
		bpf_spin_unlock(&c->lock);
	}
}

/* What a loop over a host's shims works on. Loops are calls: the kernel's verifier goes through their bodies once. */
struct walk {
	struct packet *skb;
	struct bpf_sock_ops *ops;
	struct host *host;
	struct connection *c;
	struct seen *seen;
	struct options *of_ip, *of_tcp;
	struct written *out;
	u32 kind, length;
	/* Bits: shims whose option is on the packet. */
	u32 took;
	u8 loaded, for_mss, consumed;
	/* Kind of an IPv4 option whose check is wrong: nobody reads it. */
	u8 refused;
	/* Where there may be another option of a kind that each one is told of; whether that is what is looked for. */
	u8 behind, more;
};

/* A shim and what is kept for it. */
#define SHIM_OF(walk, i) (&(walk)->host->shim[(i) & (SHIMS - 1)])
#define KEPT_OF(walk, i) (&(walk)->c->kept[(i) & (SHIMS - 1)])

/* Counts a TCP option that found no room. With room TCP has written it. */
static int count_missing(u32 i, void *with)
{
	struct walk *walk = with;
	const struct shim *shim = SHIM_OF(walk, i);
	u32 length = shim->length;

	if (!writes(shim, TCP, walk->kind))
		return 0;
	if (shim->what == ECHO)
		length = KEPT_OF(walk, i)->length;
	if (!length || walk->seen->tcp_length + PADDED(length) <= ROOM)
		return 0;
	if (!walk->loaded &&
	    load_options(walk->skb, walk->of_tcp, ETHERNET + walk->seen->ip_length, walk->seen->tcp_length))
		return 1;
	walk->loaded = 1;
	if (find(walk->of_tcp, shim->option_kind) < 0)
		no_room(shim->agent);
	return 0;
}

/* Appends an IPv4 option to those that the packet is to get. */
static int append(u32 i, void *with)
{
	struct walk *walk = with;
	const struct shim *shim = SHIM_OF(walk, i);
	u64 option[WORDS];
	u32 length, changes;

	if (!writes(shim, IP, walk->kind))
		return 0;
	length = to_write(shim, walk->c, i & (SHIMS - 1), option, &changes);
	if (!length)
		return 0;
	if (shim->what < ECHO && shim->once && walk->c && KEPT_OF(walk, i)->length)
		return 0;
	if (walk->seen->ip_length > IPV4 || walk->length + length > OPTION) {
		if (walk->c)
			no_room(shim->agent);
		return 0;
	}
	for (int word = 0; word < WORDS; word++)
		*(u64 *)(walk->out->bytes + (walk->length & 63) + 8 * word) = option[word];
	walk->out->changes[i & (SHIMS - 1)] = changes;
	walk->length += length;
	walk->took |= 1u << (i & (SHIMS - 1));
	return 0;
}

#define CHECKED_LENGTH 12
#define SECOND_KEY 0x40

/* The check of an option's first seven bytes of data; see `crates/transport/src/host/check.rs`. */
ALWAYS_INLINE u32 check_for(const struct walk *walk, const struct shim *shim, const u8 *data, u8 leaves)
{
	const struct seen *seen = walk->seen;
	/* Whether the packet goes from the end that opened the connection. */
	u8 forth = !!walk->c->active == leaves;
	u32 source = __builtin_bswap32(seen->ip.source), target = __builtin_bswap32(seen->ip.target);
	u32 source_port = NETWORK16(seen->tcp.source), target_port = NETWORK16(seen->tcp.target), bound = 0;
	u8 flags = seen->tcp.flags & (SYN | ACK);

	if (flags == SYN)
		bound = __builtin_bswap32(seen->tcp.seq);
	if (flags == (SYN | ACK))
		bound = __builtin_bswap32(seen->tcp.ack);

	u32 words[CHECKED_WORDS] = {
		forth ? source : target,
		forth ? source_port << 16 | target_port : target_port << 16 | source_port,
		forth ? target : source,
		bound,
		(u32)data[0] << 24 | (u32)data[1] << 16 | (u32)data[2] << 8 | data[3],
		(u32)data[4] << 24 | (u32)data[5] << 16 | (u32)data[6] << 8,
	};

	return check_of(data[0] & SECOND_KEY ? shim->option[1] : shim->option[0], words, CHECKED_WORDS);
}

/* Puts the check into an option that the packet is to get. */
static int sign(u32 i, void *with)
{
	struct walk *walk = with;
	const struct shim *shim = SHIM_OF(walk, i);
	u32 at = 0, check;
	u8 *bytes = walk->out->bytes;

	if (shim->what != CHECK || !walk->c)
		return 0;
	for (int step = 0; step < SHIMS && at < walk->length && at < OPTION - CHECKED_LENGTH + 1; step++) {
		u32 length;

		BOUNDED(at);
		length = bytes[at + 1];
		if (bytes[at] == shim->option_kind && length == CHECKED_LENGTH) {
			bytes[at + HEAD] = (bytes[at + HEAD] & ~SECOND_KEY) | (shim->option[2] ? SECOND_KEY : 0);
			check = check_for(walk, shim, bytes + at + HEAD, 1);
			bytes[at + 9] = check >> 16;
			bytes[at + 10] = check >> 8;
			bytes[at + 11] = check;
			return 0;
		}
		at += length;
	}
	return 0;
}

/* A shim's option is on the packet. */
static int note_written(u32 i, void *with)
{
	struct walk *walk = with;
	const struct shim *shim = SHIM_OF(walk, i);

	if (!(walk->took >> (i & (SHIMS - 1)) & 1))
		return 0;
	if (shim->what < ECHO && shim->once && walk->c)
		KEPT_OF(walk, i)->length = 1;
	echoed(shim, walk->c, i & (SHIMS - 1), walk->out->changes[i & (SHIMS - 1)]);
	return 0;
}

/* The packet could not be made longer. */
static int note_left_out(u32 i, void *with)
{
	struct walk *walk = with;

	if (walk->took >> (i & (SHIMS - 1)) & 1 && walk->c)
		no_room(SHIM_OF(walk, i)->agent);
	return 0;
}

SECTION("tc") int leaving(struct packet *skb)
{
	struct options of_tcp;
	struct seen seen = {};
	struct walk walk = {.skb = skb, .seen = &seen, .of_tcp = &of_tcp};
	u32 length, end, first = 0;
	s64 sum;

	if (!look(skb, &seen))
		return NEXT;
	walk.host = bpf_map_lookup_elem(&hosts, &seen.ip.source);
	if (!walk.host)
		return NEXT;
	walk.kind = seen.kind;
	if (seen.kind != UDP_KIND) {
		walk.c = connection_of(seen.ip.source, seen.ip.target, NETWORK16(seen.tcp.source),
				       NETWORK16(seen.tcp.target));
		if (!walk.c)
			return NEXT;
		end = end_of(skb, &seen);
		/* A retransmission does not take it back. */
		if (seen.tcp.flags & SYN || (s32)(end - walk.c->sent_end) > 0)
			walk.c->sent_end = end;
		if (seen.tcp.flags & ACK)
			walk.c->sent_ack = __builtin_bswap32(seen.tcp.ack);
		walk.c->window = seen.tcp.window;
		if (seen.tcp.flags & FIN)
			walk.c->sent_fin = 1;
		if (walk.host->writes_tcp)
			bpf_loop(walk.host->shims, count_missing, &walk, 0);
	}
	walk.out = bpf_map_lookup_elem(&scratch, &first);
	if (!walk.out)
		return NEXT;
	bpf_loop(walk.host->shims, append, &walk, 0);
	if (!walk.length)
		return NEXT;
	bpf_loop(walk.host->shims, sign, &walk, 0);
	*(u32 *)(walk.out->bytes + (walk.length & 63)) = 0;
	length = PADDED(walk.length);
	BOUNDED(length);
	if (!length)
		return NEXT;
	if (bpf_skb_adjust_room(skb, length, BETWEEN_IP_AND_TCP, SAME_SEGMENTS)) {
		bpf_loop(walk.host->shims, note_left_out, &walk, 0);
		return NEXT;
	}
	seen.ip.version_length = 0x40 | (5 + length / 4);
	seen.ip.length = NETWORK16(NETWORK16(seen.ip.length) + length);
	seen.ip.checksum = 0;
	sum = bpf_csum_diff(0, 0, &seen.ip, sizeof(seen.ip), 0);
	sum = bpf_csum_diff(0, 0, walk.out->bytes, length, sum);
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff);
	sum = (sum & 0xffff) + (sum >> 16);
	seen.ip.checksum = ~sum;
	bpf_skb_store_bytes(skb, ETHERNET, &seen.ip, sizeof(seen.ip), 0);
	bpf_skb_store_bytes(skb, ETHERNET + IPV4, walk.out->bytes, length, 0);
	bpf_loop(walk.host->shims, note_written, &walk, 0);
	return NEXT;
}

/* Whether an option's data is a larger number than another's, in network order. Bytes behind the end are 0. */
ALWAYS_INLINE int is_larger(const u64 *a, u64 a_length, const u64 *b, u64 b_length)
{
	if (a_length != b_length)
		return a_length > b_length;
	for (int word = 0; word < WORDS; word++) {
		u64 one = __builtin_bswap64(a[word]), other = __builtin_bswap64(b[word]);

		/* The first word holds kind and length. */
		if (word == 0) {
			one <<= 16;
			other <<= 16;
		}
		if (one != other)
			return one > other;
	}
	return 0;
}

ALWAYS_INLINE int is_same(const u64 *a, const u64 *b)
{
	u64 differs = 0;

	for (int word = 0; word < WORDS; word++)
		differs |= a[word] ^ b[word];
	return !differs;
}

ALWAYS_INLINE void signal(struct packet *skb, struct seen *seen, u8 kind, u32 length, const u64 *option)
{
	struct {
		u32 source, target;
		u16 source_port, target_port;
	} tuple = {seen->ip.source, seen->ip.target, seen->tcp.source, seen->tcp.target};
	struct bpf_sock *sk = bpf_skc_lookup_tcp(skb, &tuple, sizeof(tuple), THIS_NAMESPACE, 0), *full;
	struct signal *to;

	if (!sk)
		return;
	full = bpf_sk_fullsock(sk);
	if (full && full->state != TCP_LISTEN) {
		to = bpf_sk_storage_get(&signals, full, 0, GET_OR_CREATE);
		if (to) {
			to->time = bpf_ktime_get_ns();
			to->kind = kind;
			to->length = length - HEAD;
			for (u32 byte = 0; byte < sizeof(to->data); byte++)
				to->data[byte] = ((u8 *)option)[HEAD + byte];
			to->count++;
		}
	}
	bpf_sk_release(sk);
}

/* Whether the option that a packet has is from who may say it. */
ALWAYS_INLINE void verify(struct walk *walk, const struct shim *shim)
{
	struct options *from = walk->of_ip;
	u32 got, length;
	int at = find(from, shim->option_kind);

	if (at < 0 || at > OPTION - HEAD)
		return;
	length = from->bytes[at + 1];
	if (length == CHECKED_LENGTH && at <= OPTION - CHECKED_LENGTH) {
		const u8 *data = from->bytes + at + HEAD;

		got = (u32)data[7] << 16 | (u32)data[8] << 8 | data[9];
		if (check_for(walk, shim, data, 0) == got)
			return;
	}
	refuse(shim->agent);
	walk->refused = shim->option_kind;
	/* TCP has no use for a packet without flags. */
	if (!walk->seen->tcp.flags)
		walk->consumed = 1;
}

/* A packet has come for a shim that reads. */
static int read(u32 i, void *with)
{
	struct walk *walk = with;
	/* The last shim is the first that it meets. */
	u32 index = (walk->host->shims - 1 - i) & (SHIMS - 1);
	const struct shim *shim = SHIM_OF(walk, index);
	u8 is_echo = shim->what == ECHO;
	u8 place = is_echo ? shim->read_place : shim->place;
	u8 kind = is_echo ? shim->read_kind : shim->option_kind;
	struct options *from = place == IP ? walk->of_ip : walk->of_tcp;
	struct kept *kept = KEPT_OF(walk, index);
	u64 option[WORDS] = {};
	u32 length;
	u8 changed;
	int at;

	if (shim->what == CHECK) {
		verify(walk, shim);
		return 0;
	}
	if (shim->what < ECHO || shim->what == GONE || !from->length || (walk->more && (!shim->each || place != IP)))
		return 0;
	if (place == IP && walk->refused && walk->refused == kind)
		return 0;
	at = find(from, kind);
	if (at < 0 || at > OPTION - HEAD)
		return 0;
	length = from->bytes[at + 1];
	BOUNDED(length);
	if (length < HEAD || length > OPTION ||
	    bpf_skb_load_bytes(walk->skb, ETHERNET + IPV4 + at + (place == IP ? 0 : walk->seen->ip_length), option, length))
		return 0;
	if (shim->what == SIGNAL) {
		signal(walk->skb, walk->seen, kind, length, option);
		return 0;
	}
	if (is_echo && length > shim->length)
		return 0;
	if (shim->consumes && length > HEAD && (((u8 *)option)[HEAD] & shim->consume_mask) == shim->consume_value)
		walk->consumed = 1;
	bpf_spin_lock(&walk->c->lock);
	changed = kept->length != length || !is_same(kept->option, option);
	if (is_echo && shim->keep_max && !is_larger(option, length, kept->option, kept->length))
		changed = 0;
	if (changed) {
		for (int word = 0; word < WORDS; word++)
			kept->option[word] = option[word];
		kept->length = length;
		kept->changes++;
	}
	bpf_spin_unlock(&walk->c->lock);
	if (shim->each && place == IP)
		walk->behind = at + length;
	if ((changed || shim->each) && !is_echo)
		tell(walk->c->number, shim->agent, REPORTED, kind, length, option);
	return 0;
}

SECTION("tc") int came(struct packet *skb)
{
	struct options of_ip, of_tcp;
	struct seen seen = {};
	struct walk walk = {.skb = skb, .seen = &seen, .of_ip = &of_ip, .of_tcp = &of_tcp};
	struct connection *c;

	if (!look(skb, &seen))
		return NEXT;
	walk.host = bpf_map_lookup_elem(&hosts, &seen.ip.target);
	if (!walk.host)
		return NEXT;
	if (load_options(skb, &of_ip, ETHERNET, seen.ip_length) ||
	    load_options(skb, &of_tcp, ETHERNET + seen.ip_length, seen.tcp_length))
		return DROP;
	if (find(&of_ip, NO_KIND) == MALFORMED || find(&of_tcp, NO_KIND) == MALFORMED)
		return DROP;
	if (seen.kind == UDP_KIND)
		return NEXT;
	c = walk.c = connection_of(seen.ip.target, seen.ip.source, NETWORK16(seen.tcp.target),
				   NETWORK16(seen.tcp.source));
	if (!c || c->stage == CLOSED_STAGE)
		return NEXT;
	if (seen.kind == SYN_KIND && c->stage == UNKNOWN_STAGE) {
		c->stage = OPENED_STAGE;
		tell(c->number, 0, OPENED, 0, 0, 0);
	}
	bpf_loop(walk.host->shims, read, &walk, 0);
	/* As many as an IPv4 header has room for. */
	for (int more = 0; more < 2 && walk.behind && !walk.refused; more++) {
		of_ip.begin = walk.behind;
		walk.behind = 0;
		walk.more = 1;
		bpf_loop(walk.host->shims, read, &walk, 0);
	}
	return walk.consumed ? DROP : NEXT;
}

ALWAYS_INLINE void set_limits(void *socket, struct connection *c)
{
	struct limit *limit = bpf_map_lookup_elem(&limits, &c->number);

	if (!limit)
		return;
	if (limit->pace != c->pace) {
		u32 rate = limit->pace ? limit->pace : UNLIMITED;

		if (!bpf_setsockopt(socket, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate)))
			c->pace = limit->pace;
	}
	if (limit->cwnd != c->cwnd) {
		s32 most = limit->cwnd ? limit->cwnd : UNCLAMPED;

		if (!bpf_setsockopt(socket, SOL_TCP, TCP_BPF_SNDCWND_CLAMP, &most, sizeof(most)))
			c->cwnd = limit->cwnd;
	}
}

SECTION("iter/tcp") int limits_set(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct connection *c;
	void *tcp;

	if (!common || common->skc_family != AF_INET)
		return 0;
	c = connection_of(common->skc_rcv_saddr, common->skc_daddr, common->skc_num, NETWORK16(common->skc_dport));
	if (!c)
		return 0;
	tcp = bpf_skc_to_tcp_sock(common);
	if (tcp)
		set_limits(tcp, c);
	return 0;
}

/* The kind of packet that TCP is about to send. */
ALWAYS_INLINE u32 kind_of(struct bpf_sock_ops *ops, u32 headers)
{
	u32 flags = ops->skb_tcp_flags;

	if (flags & SYN)
		return flags & ACK ? SYN_ACK_KIND : SYN_KIND;
	return ops->skb_len > headers ? DATA_KIND : ACK_KIND;
}

static int reserve(u32 i, void *with)
{
	struct walk *walk = with;
	const struct shim *shim = SHIM_OF(walk, i);
	u32 length = shim->length;

	if (!writes(shim, TCP, walk->kind))
		return 0;
	if (shim->what == ECHO && !walk->for_mss)
		length = KEPT_OF(walk, i)->length;
	if (length)
		bpf_reserve_hdr_opt(walk->ops, length, 0);
	return 0;
}

static int write_option(u32 i, void *with)
{
	struct walk *walk = with;
	const struct shim *shim = SHIM_OF(walk, i);
	u64 option[8] = {};
	u32 length, changes;

	if (!writes(shim, TCP, walk->kind))
		return 0;
	length = to_write(shim, walk->c, i & (SHIMS - 1), option, &changes);
	BOUNDED(length);
	if (length && !bpf_store_hdr_opt(walk->ops, option, length, 0))
		echoed(shim, walk->c, i & (SHIMS - 1), changes);
	return 0;
}

/* The TCP options of a packet, or with `FOR_MSS` the room for those of data. */
ALWAYS_INLINE void reserve_options(struct bpf_sock_ops *ops, struct host *host, struct connection *c)
{
	struct walk walk = {.ops = ops, .host = host, .c = c};

	walk.for_mss = ops->args[0] == FOR_MSS;
	walk.kind = walk.for_mss ? DATA_KIND : kind_of(ops, 0);
	bpf_loop(host->shims, reserve, &walk, 0);
}

ALWAYS_INLINE void write_options(struct bpf_sock_ops *ops, struct host *host, struct connection *c)
{
	u8 *data = (u8 *)(long)ops->skb_data, *end = (u8 *)(long)ops->skb_data_end;
	struct walk walk = {.ops = ops, .host = host, .c = c};

	if (data + sizeof(struct tcp_header) > end)
		return;
	walk.kind = kind_of(ops, (data[12] >> 4) * 4);
	bpf_loop(host->shims, write_option, &walk, 0);
}

ALWAYS_INLINE void reach(struct connection *c, u32 stage, u8 what)
{
	if (c->stage < stage) {
		c->stage = stage;
		tell(c->number, 0, what, 0, 0, 0);
	}
}

SECTION("sockops") int sockets(struct bpf_sock_ops *ops)
{
	u32 op = ops->op, address;
	struct connection *c;
	struct host *host;

	if (ops->family != AF_INET || op < CONNECT || (op > PASSIVE_ESTABLISHED && op < STATE))
		return 1;
	address = ops->local_ip4;
	host = bpf_map_lookup_elem(&hosts, &address);
	/* The addresses of other labs are the same. */
	if (!host || bpf_get_netns_cookie(ops) != host->cookie)
		return 1;
	if (op == LISTEN) {
		if (host->writes_tcp)
			bpf_sock_ops_cb_flags_set(ops, WRITE_FLAG);
		return 1;
	}
	c = connection_of(address, ops->remote_ip4, ops->local_port, NETWORK16(ops->remote_port >> 16));
	if (!c)
		return 1;
	switch (op) {
	case CONNECT:
	case ACTIVE_ESTABLISHED:
	case PASSIVE_ESTABLISHED:
		bpf_sock_ops_cb_flags_set(ops, STATE_FLAG | (host->writes_tcp ? WRITE_FLAG : 0));
		reach(c, OPENED_STAGE, OPENED);
		if (op != CONNECT)
			reach(c, ESTABLISHED_STAGE, ESTABLISHED);
		set_limits(ops, c);
		break;
	case STATE:
		if (ops->args[1] == TCP_CLOSE)
			reach(c, CLOSED_STAGE, CLOSED);
		break;
	case OPTIONS_LENGTH:
		reserve_options(ops, host, c);
		break;
	case WRITE_OPTIONS:
		write_options(ops, host, c);
		break;
	}
	return 1;
}

char terms[] SECTION("license") = "GPL";

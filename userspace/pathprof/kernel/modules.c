// SPDX-License-Identifier: GPL-2.0-only
/*
 * The type information of the kernel modules that have hooks.  A module that
 * is loaded later is not seen; one that has hooks cannot be unloaded.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <dirent.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include "kernel/modules.h"
#include "stages.h"

static const struct {
	const char *function, *module;
} homes[] = {
	{ "br_handle_frame", "bridge" }, { "br_dev_xmit", "bridge" },
	{ "br_forward", "bridge" }, { "br_flood", "bridge" },
	{ "nf_conntrack_in", "nf_conntrack" },
	{ "vlan_dev_hard_start_xmit", "8021q" },
	{ "macvlan_handle_frame", "macvlan" },
	{ "macvlan_start_xmit", "macvlan" },
	{ "ipvlan_handle_frame", "ipvlan" },
	{ "ipvlan_start_xmit", "ipvlan" },
	{ "vxlan_xmit", "vxlan" }, { "vxlan_rcv", "vxlan" },
	{ "ip_tunnel_xmit", "ip_tunnel" }, { "ip_tunnel_rcv", "ip_tunnel" },
	{ "geneve_xmit", "geneve" }, { "geneve_udp_encap_recv", "geneve" },
	{ "ip6_tnl_start_xmit", "ip6_tunnel" },
	{ "__ip6_tnl_rcv", "ip6_tunnel" },
	{ "ip6gre_tunnel_xmit", "ip6_gre" },
	{ "sit_tunnel_xmit", "sit" }, { "ipip6_rcv", "sit" },
	{ "bond_start_xmit", "bonding" }, { "bond_handle_frame", "bonding" },
	{ "team_xmit", "team" }, { "team_handle_frame", "team" },
	{ "ovs_vport_receive", "openvswitch" },
	{ "ovs_execute_actions", "openvswitch" },
	{ "ovs_dp_upcall", "openvswitch" },
	{ "tls_rx_one_record", "tls" }, { "tls_strp_copyin", "tls" },
	{ "veth_xdp_rcv_skb", "veth" },
	{ "wg_xmit", "wireguard" }, { "wg_receive", "wireguard" },
	{ "encrypt_packet", "wireguard" }, { "decrypt_packet", "wireguard" },
	{ "wg_socket_send_skb_to_peer", "wireguard" },
};

#define HOMES (sizeof(homes) / sizeof(*homes))

/* Of --stage: found where they are. */
static struct {
	char function[48], module[64];
} added[USER_STAGES];
static size_t nadded;

const char *modules__of(const char *function)
{
	size_t i;

	for (i = 0; i < HOMES; i++)
		if (!strcmp(homes[i].function, function))
			return homes[i].module;
	for (i = 0; i < nadded; i++)
		if (!strcmp(added[i].function, function))
			return added[i].module;
	return NULL;
}

static struct btf *parse(struct btf *vmlinux, const char *module)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/kernel/btf/%.64s", module);
	return access(path, R_OK) ? NULL : btf__parse_split(path, vmlinux);
}

struct btf *modules__search(struct btf *vmlinux, const char *function, int *id)
{
	DIR *dir = opendir("/sys/kernel/btf");
	struct btf *btf = NULL;
	struct dirent *entry;

	while (dir && !btf && (entry = readdir(dir))) {
		if (*entry->d_name == '.' || !strcmp(entry->d_name, "vmlinux") ||
		    strlen(entry->d_name) >= sizeof(added[0].module))
			continue;
		btf = parse(vmlinux, entry->d_name);
		*id = btf ? btf__find_by_name_kind(btf, function,
						   BTF_KIND_FUNC) : 0;
		if (*id > 0)
			break;
		btf__free(btf);
		btf = NULL;
	}
	if (btf && !modules__of(function) && nadded < USER_STAGES) {
		snprintf(added[nadded].function, sizeof(added[0].function),
			 "%s", function);
		snprintf(added[nadded].module, sizeof(added[0].module), "%.63s",
			 entry->d_name);
		nadded++;
	}
	if (dir)
		closedir(dir);
	return btf;
}

static void walk(struct btf *vmlinux, const char *module,
		 void (*found)(void *arg, const char *function, int id,
			       const char *module), void *arg)
{
	int id = btf__type_cnt(vmlinux), n;
	const struct btf_type *type;
	struct btf *btf = parse(vmlinux, module);

	if (!btf)
		return;
	for (n = btf__type_cnt(btf); id < n; id++) {
		type = btf__type_by_id(btf, id);
		if (btf_is_func(type))
			found(arg, btf__name_by_offset(btf, type->name_off),
			      id, module);
	}
	btf__free(btf);
}

void modules__functions(struct btf *vmlinux,
			void (*found)(void *arg, const char *function, int id,
				      const char *module), void *arg)
{
	size_t i;

	/* Those of one module stand together. */
	for (i = 0; i < HOMES; i++)
		if (!i || strcmp(homes[i].module, homes[i - 1].module))
			walk(vmlinux, homes[i].module, found, arg);
	for (i = 0; i < nadded; i++)
		walk(vmlinux, added[i].module, found, arg);
}

int modules__btf(const char *module)
{
	struct bpf_btf_info info;
	uint32_t id = 0, len;
	char name[64];
	int fd;

	while (!bpf_btf_get_next_id(id, &id)) {
		fd = bpf_btf_get_fd_by_id(id);
		if (fd < 0)
			continue;
		memset(&info, 0, sizeof(info));
		memset(name, 0, sizeof(name));
		info.name = (uintptr_t)name;
		info.name_len = sizeof(name);
		len = sizeof(info);
		if (!bpf_obj_get_info_by_fd(fd, &info, &len) &&
		    info.kernel_btf && !strcmp(name, module))
			return fd;
		close(fd);
	}
	return -errno;
}

// The key `volumes`: what is mounted at which path.
#include <algorithm>

#include "describe/spec/schema.h"
#include "ground/base/nearest.h"
#include "ground/base/quantity.h"

namespace systole {
namespace {

using Kind = VolumeSpec::Kind;

struct KindRow {
  Kind kind;
  const char* name;
  const char* of;  // form of its value
};
constexpr KindRow kKinds[] = {{Kind::claim, "claim", "the name of a persistent volume claim"},
                              {Kind::nfs, "nfs", "SERVER:/PATH"},
                              {Kind::bucket, "bucket", "the name of a bucket"},
                              {Kind::image, "image", "a container image, NAME@sha256:DIGEST or NAME:TAG"},
                              {Kind::filestore, "filestore", "a tier: zonal, regional, basic-hdd, basic-ssd or auto"},
                              {Kind::lustre, "lustre", "PROJECT/ZONE/INSTANCE"},
                              {Kind::parallelstore, "parallelstore", "PROJECT/ZONE/INSTANCE, or new"},
                              {Kind::hyperdisk, "hyperdisk", "a type: balanced, throughput or extreme"},
                              {Kind::local_ssd, "local_ssd", "true"},
                              {Kind::cheapest, "cheapest", "true"}};

bool is_word(Kind kind) { return kind == Kind::local_ssd || kind == Kind::cheapest; }

const KindRow& row_of(Kind kind) { return *std::ranges::find(kKinds, kind, &KindRow::kind); }

bool is_plain(std::string_view text) {
  return !text.empty() && text[0] != '-' && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._/:,-").find(c) != std::string_view::npos;
  });
}

Result<std::string> read_plain(const Node& node, const char* expected) {
  const std::string text = TRY(node.as_string());
  if (is_plain(text)) return text;
  return error(ErrorKind::invalid, "'{}' is not {}", text, expected)
      .at(node.where())
      .hinted("letters, digits and ._/:,-; no '-' in front");
}

// Reads one key of a volume's map. Errors: invalid, at its place.
Status read_entry(const Node::Entry& entry, VolumeSpec& volume, int& kinds) {
  if (const auto* row = std::ranges::find(kKinds, entry.key, &KindRow::name); row != std::end(kKinds)) {
    ++kinds;
    volume.kind = row->kind;
    if (row->kind == Kind::image) {
      volume.of = TRY(entry.value.as_string());  // how it is written, who renders it checks
    } else if (!is_word(row->kind)) {
      volume.of = TRY(read_plain(entry.value, row->of));
    } else if (!TRY(entry.value.as_bool())) {
      return entry.value.wrong("true");
    }
  } else if (entry.key == "address") {
    volume.address = TRY(read_plain(entry.value, "an address"));
  } else if (entry.key == "network") {
    volume.network = TRY(read_plain(entry.value, "the name of a network"));
  } else if (entry.key == "class") {
    volume.of_class = TRY(read_plain(entry.value, "the name of a StorageClass"));
  } else if (entry.key == "read_only") {
    volume.read_only = TRY(entry.value.as_bool());
  } else if (entry.key == "size") {
    volume.size = TRY(as_bytes(entry.value));
  } else {
    std::vector<std::string> known = {"address", "network", "class", "read_only", "size"};
    for (const KindRow& kind : kKinds) known.emplace_back(kind.name);
    return error(ErrorKind::invalid, "a volume has no '{}'", entry.key)
        .at(entry.where())
        .hinted(nearest_hint(entry.key, known));
  }
  return {};
}

// Checks the further keys that each kind requires, and those that only some kinds allow.
Status check(const VolumeSpec& volume, const Node& node) {
  const auto wrong = [&](std::string what, const char* hint) {
    return error(ErrorKind::invalid, "{}: {}", row_of(volume.kind).name, what).at(node.where()).hinted(hint);
  };
  const bool placed = volume.kind == Kind::lustre || (volume.kind == Kind::parallelstore && !volume.made());
  if (volume.kind == Kind::filestore && volume.of == "regional" && !volume.size)
    return wrong("it is made new, and its speed is unknown: of which size?", "size: 1TiB");
  if (volume.kind == Kind::hyperdisk && !volume.size) return wrong("it is made new, of which size?", "size: 1TiB");
  if (volume.made() && volume.read_only)
    return wrong(volume.kind == Kind::local_ssd ? "it begins empty" : "it is made new, and would stay empty",
                 volume.kind == Kind::claim ? "take size out, or read_only" : "take read_only out");
  if (placed && !volume.size) return wrong("how large is it?", "size: 9000GiB, as the instance has");
  if (placed && volume.address.empty())
    return wrong("at which address?", volume.kind == Kind::lustre ? "address: IP/FILESYSTEM" : "address: IP,IP,IP");
  if (!placed && !volume.address.empty()) return wrong("it has no address of its own", "take address out");
  if (volume.kind != Kind::parallelstore && !volume.network.empty())
    return wrong("only parallelstore says its network", "take network out");
  if (!volume.of_class.empty() && (volume.kind != Kind::claim || !volume.size))
    return wrong("a class is of a claim that is made", "class beside claim and size");
  if ((volume.kind == Kind::nfs || volume.kind == Kind::bucket || volume.kind == Kind::image) && volume.size)
    return wrong("it is as large as it is", "take size out");
  if (volume.kind == Kind::image && !volume.read_only)
    return wrong("what is in an image stays as it is", "read_only: true beside image");
  const auto one_of = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, volume.of) != names.end();
  };
  if (volume.kind == Kind::filestore && !one_of({"zonal", "regional", "basic-hdd", "basic-ssd", "auto"}))
    return wrong(fmt::format("'{}' is no tier", volume.of), "zonal, regional, basic-hdd, basic-ssd or auto");
  if (volume.kind == Kind::hyperdisk && !one_of({"balanced", "throughput", "extreme"}))
    return wrong(fmt::format("'{}' is no type of disk that one writes", volume.of), "balanced, throughput or extreme");
  return {};
}

Result<VolumeSpec> read_volume(const Node& node) {
  VolumeSpec volume;
  if (!node.is_map()) {
    volume.of = TRY(read_plain(node, "the name of a claim"));
    return volume;
  }
  int kinds = 0;
  for (const Node::Entry& entry : node.entries()) TRY(read_entry(entry, volume, kinds));
  if (kinds == 1) {
    TRY(check(volume, node));
    return volume;
  }
  return error(ErrorKind::invalid, "a volume is of one kind, and here are {}", kinds)
      .at(node.where())
      .hinted("one of claim, nfs, bucket, image, filestore, lustre, parallelstore, hyperdisk, local_ssd, cheapest");
}

Node bytes_node(Bytes bytes) {
  if (bytes.count() % kGiB.count() == 0) return fmt::format("{}GiB", bytes.count() / kGiB.count());
  return fmt::format("{}B", bytes.count());
}

Node node_of(const VolumeSpec& volume) {
  if (volume == VolumeSpec{.of = volume.of}) return volume.of;
  Node node;
  node.set(name_of(volume.kind), is_word(volume.kind) ? Node(true) : Node(volume.of));
  if (!volume.address.empty()) node.set("address", volume.address);
  if (!volume.network.empty()) node.set("network", volume.network);
  if (!volume.of_class.empty()) node.set("class", volume.of_class);
  if (volume.size) node.set("size", bytes_node(*volume.size));
  if (volume.read_only) node.set("read_only", true);
  return node;
}

Codec volumes_codec() {
  Codec codec;
  codec.type = "map of paths to volumes";
  codec.read = [](const Node& node, Workload& w) -> Status {
    if (!node.is_map()) return node.wrong("a map of paths to volumes, such as { /data: { bucket: corpus } }");
    std::map<std::string, VolumeSpec> volumes;
    for (const Node::Entry& entry : node.entries()) {
      if (!entry.key.starts_with('/') || entry.key.ends_with('/') || !is_plain(entry.key))
        return error(ErrorKind::invalid, "'{}' is no path of a container", entry.key)
            .at(entry.where())
            .hinted("/data: NAME mounts the claim NAME there");
      volumes[entry.key] = TRY(read_volume(entry.value));
    }
    w.volumes = std::move(volumes);
    return {};
  };
  codec.write = [](Workload& w) {
    Node node;
    for (const auto& [path, volume] : w.volumes) node.set(path, node_of(volume));
    return node;
  };
  return codec;
}

}  // namespace

const char* name_of(VolumeSpec::Kind kind) { return row_of(kind).name; }

void add_volume_keys(Schema& schema) {
  schema.keys.push_back(
      {.path = "volumes",
       .codec = volumes_codec(),
       .doc = "What is mounted where, on every node: { /data: { bucket: corpus, read_only: true } }.",
       .more = "One of claim: NAME (made when size is said, of class: NAME), nfs: SERVER:/PATH, bucket: NAME (Cloud "
               "Storage FUSE), filestore: TIER, lustre or parallelstore: PROJECT/ZONE/INSTANCE with size "
               "and address, parallelstore: new, hyperdisk: TYPE with a size (one node), local_ssd: true (ends with "
               "its pod), cheapest: true; and read_only. A text is a claim. filestore: auto, a filestore or new "
               "parallelstore without size, and cheapest: true follow from the plan's feed: the tier and size that "
               "give the rows at the lowest price; a size beside auto or cheapest is what they have to hold. A run's "
               "folder needs files that can be renamed and locked, which a bucket's cannot.",
       .optional = true});
}

}  // namespace systole

#include "operate/targets/kubernetes/kube_bring.h"

#include <unistd.h>

#include <cerrno>

#include "ground/base/base64.h"
#include "ground/base/os_error.h"
#include "ground/process/spawn.h"
#include "ground/store/sha256.h"
#include "operate/targets/kubernetes/kube_log.h"
#include "operate/targets/kubernetes/kube_objects.h"

namespace systole {
namespace {

constexpr Seconds kPatience{180.0};  // for the pod to start; its image is already there
constexpr Seconds kGone{60.0};       // for a pod of an earlier call to disappear
constexpr Seconds kSilence{900.0};   // without a line: it reads the whole folder before the first and after the last
constexpr int kNoFolder = 44, kNotWhole = 45;

// First reads everything, because a pipe hides read errors (with archive /dev/null tar would read no files); tar's
// messages are for people. Then sends one pass, and the digest of the text of a second pass: they differ if files are
// being written.
constexpr const char* kScript =
    "cd \"$0\" 2>/dev/null || exit 44; "
    "cut=$({ { tar -cf - . || echo cut >&3; } | cat >/dev/null; } 3>&1); [ -z \"$cut\" ] || exit 45; "
    "tar -cf - . 2>/dev/null | base64 -w 76 || exit 1; "
    "tar -cf - . 2>/dev/null | base64 -w 76 | sha256sum";

bool holds(const std::string& path, const std::string& folder) {
  return folder == path || folder.starts_with(path.ends_with('/') ? path : path + "/");
}

// The pod: the run's image and user, with only the mount that contains the folder.
Result<Node> pod_for(const Record& record, const Node& pod, const std::string& folder) {
  const Node* containers = at(pod, {"spec", "containers"});
  const Node& main = containers->items()[0];
  Node mounts = Node::sequence(), volumes = Node::sequence();
  std::string best, volume;
  if (const Node* all = main.find("volumeMounts"))
    for (const Node& mount : all->items())
      if (const std::string path = text_at(mount, {"mountPath"}); holds(path, folder) && path.size() > best.size()) {
        best = path;
        volume = text_at(mount, {"name"});
        Node read_only = mount;
        mounts = Node::sequence({read_only.set("readOnly", true)});
      }
  if (const Node* all = at(pod, {"spec", "volumes"}))
    for (const Node& one : all->items())
      if (text_at(one, {"name"}) == volume && one.find("emptyDir") == nullptr) volumes.push(one);
  if (volumes.items().empty())
    return error(ErrorKind::not_found, "'{}' is in no claim: what was written there ended with its pods", folder)
        .hinted("claims: { /runs: NAME }, folder: /runs");
  Node container = Node::map({{"name", "results"}, {"image", text_at(main, {"image"})}});
  container.set("command", Node::sequence({"/bin/sh", "-c", kScript, folder}));
  if (const Node* rights = main.find("securityContext")) container.set("securityContext", *rights);
  container.set("resources", Node::map({{"requests", Node::map({{"cpu", "100m"}, {"memory", "128Mi"}})}}));
  container.set("volumeMounts", mounts);
  Node spec = Node::map({{"restartPolicy", "Never"}, {"automountServiceAccountToken", false}});
  for (const char* key : {"securityContext", "imagePullSecrets", "tolerations"})
    if (const Node* value = at(pod, {"spec", key})) spec.set(key, *value);
  if (const Node* selector = at(pod, {"spec", "nodeSelector"})) {  // needs no accelerator
    Node rest = Node::map();
    for (const Node::Entry& entry : selector->entries())
      if (!entry.key.starts_with("cloud.google.com/")) rest.set(entry.key, entry.value);
    spec.set("nodeSelector", rest);
  }
  spec.set("containers", Node::sequence({container})).set("volumes", volumes);
  Node labels = Node::map({{"app.kubernetes.io/name", "systole"}, {"app.kubernetes.io/managed-by", "systole"}});
  labels.set(kRunLabel, record.run);
  Node metadata = Node::map({{"name", record.run + "-results"}, {"labels", labels}});
  metadata.set("namespace", text_at(pod, {"metadata", "namespace"}));
  return Node::map({{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", metadata}, {"spec", spec}});
}

// Consumes the lines of the log: pipes the text into `tar`, compares the digest at the end.
class Unpacking {
 public:
  static Result<Unpacking> start(const std::string& into) {
    Command command{.argv = {"tar", "-C", into, "--no-same-owner", "--no-same-permissions", "-xf", "-"}};
    command.in = ChildStream::pipe();
    command.out = command.err = ChildStream::null();
    return Unpacking(TRY(Process::start(command)));
  }
  Status take(const std::string& lines) {
    for (std::size_t at = 0, end; (end = lines.find('\n', at)) != lines.npos; at = end + 1) {
      const std::string line = lines.substr(at, end - at);
      if (line.ends_with("  -")) {
        told_ = line.substr(0, line.size() - 3);
        continue;
      }
      if (line.find(' ') != line.npos) {  // a message of tar
        said_ = line;
        continue;
      }
      digest_.add(std::as_bytes(std::span(lines.data() + at, end + 1 - at)));
      TRY(write(TRY(from_base64(line))));
    }
    return {};
  }
  const std::string& said() const { return said_; }
  Status end() {
    tar_.close_in();
    const Exit exit = tar_.wait();
    std::string mine;
    for (const std::byte b : digest_.digest()) mine += fmt::format("{:02x}", static_cast<unsigned>(b));
    if (told_.empty() || told_ != mine || !exit.ok())
      return error(ErrorKind::corrupt, "what came is not what was sent: {}",
                   told_.empty()   ? "it is cut"
                   : told_ != mine ? "its digest is another"
                                   : "it is no tar")
          .hinted("again; a cluster that keeps short logs (containerLogMaxSize) gives large folders by kubectl cp");
    return {};
  }

 private:
  explicit Unpacking(Process tar) : tar_(std::move(tar)) {}
  Status write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t put = ::write(tar_.in(), bytes.data(), bytes.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return os_error(errno, "unpack what came");
      bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return {};
  }
  Process tar_;
  Sha256 digest_;
  std::string told_, said_;
};

// Waits until the pod runs or has ended.
Status wait_for(KubeApi& api, const std::string& path) {
  const Seconds begun = api.clock().now();
  while (true) {
    const Node pod = TRY(api.get(path));
    const std::string phase = text_at(pod, {"status", "phase"});
    if (phase != "Pending" && !phase.empty()) return {};
    if (api.clock().now() - begun > kPatience) {
      std::string why = "nobody says why";
      if (const Node* conditions = at(pod, {"status", "conditions"}))
        for (const Node& one : conditions->items())
          if (text_at(one, {"status"}) == "False" && !text_at(one, {"message"}).empty())
            why = text_at(one, {"message"});
      return error(ErrorKind::busy, "the pod that brings results does not start: {}", why);
    }
    api.clock().sleep(Seconds(0.2));
  }
}

}  // namespace

Status bring_folder(KubeApi& api, const Record& record, const Node& pod, const std::string& folder,
                    const std::string& into) {
  const Node helper = TRY(pod_for(record, pod, folder));
  const std::string path = TRY(api.path_of(helper));
  TRY(api.remove(path, "Background", 0));
  for (const Seconds begun = api.clock().now(); TRY(api.find(path)); api.clock().sleep(Seconds(0.2)))
    if (api.clock().now() - begun > kGone)
      return error(ErrorKind::busy, "the pod '{}-results' of a time before does not go", record.run)
          .hinted(fmt::format("kubectl delete pod -n {} {}-results --force", text_at(helper, {"metadata", "namespace"}),
                              record.run));
  TRY(api.create(helper));
  Status brought = [&]() -> Status {
    TRY(wait_for(api, path));
    Unpacking unpacking = TRY(Unpacking::start(into));
    LogLines lines;
    Status taken;
    const LogPlace place{text_at(helper, {"metadata", "namespace"}), text_at(helper, {"metadata", "name"}), "results"};
    Seconds heard = api.clock().now();
    const auto take = [&](const std::string& text) {
      heard = api.clock().now();
      taken = unpacking.take(text);
      return taken.ok();
    };
    const auto silent = [&] { return api.clock().now() - heard > kSilence; };
    TRY(follow_log(api, place, lines, take, silent));
    TRY(std::move(taken));
    if (silent())
      return error(ErrorKind::busy, "nothing came of '{}' in {:.0f} minutes", folder, kSilence.count() / 60)
          .hinted("kubectl describe pod " + place.pod + " tells of it while it is there; then again");
    const Node ended = TRY(api.get(path));
    if (const Node* all = at(ended, {"status", "containerStatuses"}))
      for (const Node& one : all->items()) {
        const std::int64_t code = number_at(one, {"state", "terminated", "exitCode"});
        if (code == kNoFolder)
          return error(ErrorKind::not_found, "there is no folder '{}' in the claim", folder)
              .hinted("systole logs tells how far it came");
        if (code == kNotWhole)
          return error(ErrorKind::io, "not all of '{}' can be read there: {}", folder, unpacking.said())
              .hinted("its files have to be readable to the user of the image, and nobody writes there");
      }
    return unpacking.end();
  }();
  (void)api.remove(path, "Background", 0).ok();
  return brought;
}

}  // namespace systole

#include "operate/run/job_lock.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <map>

#include "ground/base/errors.h"
#include "ground/base/hash.h"
#include "ground/base/text_file.h"
#include "ground/base/version.h"
#include "operate/observe/run_files.h"
#include "operate/render/quote.h"
#include "operate/run/origin.h"
#include "operate/run/run_places.h"
#ifdef SYSTOLE_HAS_CPU
#include "execute/backends/cpu/cpu.h"
#endif

namespace systole {
namespace {

constexpr std::int64_t kLockVersion = 1;
constexpr const char* kImported = "imported_weights";  // present if model.weights is
constexpr const char* kOrigin = "resume_from";         // present if resume.from is
constexpr const char* kMadeUp = "made up";

Result<std::string> hash_of_this_program() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  Hasher hasher;
  std::string piece(1 << 20, 0);
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) || file.gcount() > 0)
    hasher.add(std::string_view(piece).substr(0, static_cast<std::size_t>(file.gcount())));
  if (file.bad() || !file.eof()) return error(ErrorKind::io, "this program cannot be read to lock it");
  return to_hex(hasher.digest());
}

// The keys that decide the result; without names, paths and reporting.
Node deciding(const Workload& workload) {
  const Node all = to_node(workload);
  Node kept = Node::map();
  for (const Node::Entry& e : all.entries()) {
    if (e.key != "name" && e.key != "labels" && e.key != "observe" && e.key != "probe" && e.key != "checkpoint" &&
        e.key != "resources" && e.key != "resume")
      kept.set(e.key, e.value);
  }
  return kept;
}

void flatten_into(const Node& node, const std::string& path, std::map<std::string, std::string>& leaves) {
  if (node.is_map()) {
    for (const Node::Entry& e : node.entries())
      flatten_into(e.value, path.empty() ? e.key : fmt::format("{}.{}", path, e.key), leaves);
  } else {
    leaves[path] = node.is_scalar() ? node.text() : to_json(node);
  }
}

std::string what_to_do(const std::string& key, const std::string& path) {
  if (key == "systole.hash" || key == "systole.version") return "run it with the program that the lock was made with";
  if (key == "machine" || key == "libraries") return "run it on a machine like the one that the lock was made on";
  if (key == "data") return "put the files of text back as they were";
  if (key.starts_with(kOrigin)) return "begin from the checkpoint that it was locked with: resume.from";
  if (key == kImported) return "put the files of model.weights back as they were";
  return fmt::format("put it back, or lock what is now: systole lock; the lock is '{}'", path);
}

}  // namespace

Result<Node> lock_of(PlannedRun& p) {
  std::string libraries;
#ifdef SYSTOLE_HAS_CPU
  if (p.job.program->target.kind == "cpu") libraries = cpu_library();
#endif
  const std::string program = TRY(hash_of_this_program());
  Node lock =
      Node::map({{"systole_lock", kLockVersion},
                 {"systole", Node::map({{"version", kSystoleVersion}, {"hash", program}})},
                 {"machine", p.job.program->target.name},
                 {"libraries", libraries},
                 {"program", hash_of(*p.job.program)},
                 {"weights", fmt::format("{} from seed {}", parameters_hash(*p.job.model), p.workload.train.seed)},
                 {"data", p.data.dataset ? p.data.dataset->manifest.key : kMadeUp},
                 {"workload", deciding(p.workload)}});
  if (!p.workload.model.weights.empty()) {
    CHECK(p.weights, "a lock of a run that goes on");
    lock.set(kImported, TRY(p.weights->hash()));
  }
  if (p.origin) lock.set(kOrigin, Node::map({{"step", p.origin->step()}, {"hash", hash_of(*p.origin)}}));
  return lock;
}

Result<std::string> lock_path_of(const std::string& workload) {
  if (workload == "-") {
    return error(ErrorKind::invalid, "a workload from standard input has no lock beside it")
        .hinted("--lock FILE names one");
  }
  return std::filesystem::path(workload).replace_extension(".lock").string();
}

Result<Node> read_lock(const std::string& path) {
  const Result<std::string> text = read_text_file(path);
  if (!text.ok() && text.error().kind != ErrorKind::not_found) return text.error();
  if (!text.ok()) {
    return error(ErrorKind::not_found, "there is no lock '{}'", path)
        .hinted("systole lock WORKLOAD writes it; every run leaves one in its folder: --lock RUN/lock.json");
  }
  Node lock = TRY(parse_json(*text, path));
  const Node* version = lock.find("systole_lock");
  if (version == nullptr)
    return error(ErrorKind::invalid, "'{}' is no lock", path).hinted("systole lock WORKLOAD writes one");
  if (TRY(version->as_int(1)) > kLockVersion) {
    return error(ErrorKind::unsupported, "the lock '{}' is of version {}; this systole reads up to {}", path,
                 version->text(), kLockVersion)
        .hinted("use a newer systole, or lock anew: systole lock WORKLOAD");
  }
  return lock;
}

std::string begin_anew(const std::string& what, const std::string& folder) {
  return fmt::format("put {} back as it was, or begin a new run: systole run {}", what,
                     shell_word(folder + "/workload.yaml"));
}

Result<RecordedInputs> recorded_inputs(const std::string& folder) {
  const std::string path = folder + "/" + kRunLock;
  std::error_code unseen;  // claim_folder reports errors of the folder
  for (const char* file : {kRunLock, RunFiles::plan})
    if (!std::filesystem::exists(fmt::format("{}/{}", folder, file), unseen)) return RecordedInputs{};
  const Node lock = TRY(read_lock(path));
  const auto told = [&lock](const char* key) {
    const Node* value = lock.find(key);
    return value == nullptr || value->text() == kMadeUp ? std::string() : value->text();
  };
  return RecordedInputs{told("data"), told(kImported)};
}

Status same_weights(const RecordedInputs& begun, const Workload& workload, const std::string& folder) {
  const std::string& path = workload.model.weights;
  if (begun.weights.empty() || path.empty() || !is_hf_folder(path)) return {};
  const std::string now = TRY(hash_of_weights(path));
  if (now == begun.weights) return {};
  return error(ErrorKind::invalid, "the weights in '{}' are others than the run was begun with (hash {} then, {} now)",
               path, begun.weights, now)
      .hinted(begin_anew(is_gguf(path) ? "the file" : "the folder", folder));
}

std::map<std::string, std::string> leaves_of(const Node& document) {
  std::map<std::string, std::string> leaves;
  flatten_into(document, "", leaves);
  return leaves;
}

Status check_lock(const Node& lock, const Node& now, const std::string& path) {
  const std::map<std::string, std::string> then = leaves_of(lock), here = leaves_of(now);
  std::map<std::string, std::string> keys = then;
  keys.insert(here.begin(), here.end());
  std::vector<Error> differences;
  const auto told = [](const std::map<std::string, std::string>& of, const std::string& key) {
    const auto found = of.find(key);
    return found == of.end() ? std::string("nothing") : "'" + found->second + "'";
  };
  for (const auto& [key, value] : keys) {
    if (told(then, key) == told(here, key)) continue;
    differences.push_back(
        error(ErrorKind::invalid, "--locked: {} is {}, the lock has {}", key, told(here, key), told(then, key))
            .hinted(what_to_do(key, path)));
  }
  if (differences.empty()) return {};
  return together(std::move(differences));
}

}  // namespace systole

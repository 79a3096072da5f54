// The parent's side: starts the child, limits its time and memory, and turns any end of it into one message.

#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "ground/base/document.h"
#include "ground/pjrt/places.h"
#include "ground/process/machine.h"
#include "ground/process/spawn.h"
#include "ground/store/store.h"
#include "predict/prove/child_files.h"
#include "predict/prove/compile_child.h"

namespace systole::prove {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(20);

Node to_node(const pjrt::OptionValue& value) {
  const auto with = [](const char* type, std::string text) {
    return Node::map({{"type", type}, {"value", std::move(text)}});
  };
  if (const auto* yes = std::get_if<bool>(&value)) return with("yes", *yes ? "true" : "false");
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return with("whole", std::to_string(*whole));
  if (const auto* real = std::get_if<double>(&value)) return with("real", fmt::format("{}", *real));
  return with("text", std::get<std::string>(value));
}

Node request_of(const std::string& folder, const Slice& slice, const CompileRequest& request) {
  Node topology = Node::map(), flags = Node::map(), devices = Node::sequence();
  for (const pjrt::NamedValue& option : slice.options) topology.set(option.name, std::get<std::string>(option.value));
  for (const auto& [name, value] : request.options.flags) flags.set(name, to_node(value));
  const auto dump = [&](const char* name, pjrt::OptionValue value) {
    if (flags.find(name) == nullptr) flags.set(name, to_node(value));
  };
  dump("xla_dump_to", folder + "/" + kDumpFolder);
  dump("xla_dump_hlo_as_proto", true);
  for (const std::int64_t device : request.options.devices) devices.push(device);
  return Node::map({{"plugin", slice.plugin},
                    {"plugins", request.plugins},
                    {"topology", slice.topology},
                    {"topology_options", std::move(topology)},
                    {"replicas", request.options.replicas},
                    {"partitions", request.options.partitions},
                    {"spmd", request.options.spmd},
                    {"shardy", request.options.shardy},
                    {"devices", std::move(devices)},
                    {"flags", std::move(flags)}});
}

// The resident memory of a process; 0: it is gone.
Bytes resident_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/statm", process));
  std::int64_t all = 0, resident = 0;
  file >> all >> resident;
  return Bytes(resident * page_size().count());
}

// The last line with a word of failure, else the last line; without glog's date and thread in front.
std::string last_words(std::string_view text) {
  std::string last, worst;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line(text.substr(at, end - at));
    at = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos || line.starts_with("    @ ")) continue;
    last = line;
    for (const char* word : {"Check failed", "rror:", "FATAL", "F0000"})
      if (line.find(word) != std::string::npos) worst = line;
  }
  constexpr std::size_t kLongest = 300;
  return (worst.empty() ? last : worst).substr(0, kLongest);
}

class Child {
 public:
  Child(const std::string& folder, Store& files, const Slice& slice, const ChildLimits& limits)
      : folder_(folder), files_(files), slice_(slice), limits_(limits), began_(std::chrono::steady_clock::now()) {}

  Result<CompilerReport> run(const std::vector<std::string>& words) {
    Command command;
    command.argv = words;
    command.argv.push_back(folder_);
    command.in = ChildStream::null();
    command.out = ChildStream::file(folder_ + "/" + kOutFile);
    command.err = ChildStream::file(folder_ + "/" + kErrFile);
    command.dies_with_parent = true;
    Process process = TRY(Process::start(command));
    const Status watched = watch(process);
    (void)process.signal_group(SIGKILL);
    const Exit exit = process.wait();
    said_.time = elapsed();
    said_.peak_resident = std::max(peak_, exit.peak_resident);
    if (const Result<std::string> words_said = read_text(files_, kErrFile); words_said.ok())
      said_.words = last_words(*words_said);
    TRY(watched);
    TRY(read_started());
    if (TRY(files_.exists(kAnswerFile))) return answered();
    if (ended_early_) return std::move(said_);
    return error(ErrorKind::io, "the compiler for {} ended badly: {}{}", slice_.name, to_string(exit),
                 said_.words.empty() ? "" : ": " + said_.words)
        .hinted(exit.signal == SIGKILL ? "the system ends a process so when memory runs out: --max-memory ends it first"
                                       : "systole doctor xla tries the plugin alone");
  }

 private:
  Seconds elapsed() const {
    return Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count());
  }

  // Waits until the process ends, or must be ended.
  Status watch(const Process& process) {
    while (!process.has_ended()) {
      const Bytes resident = resident_of(process.pid());
      peak_ = std::max(peak_, resident);
      if (limits_.memory.count() > 0 && resident > limits_.memory)
        return error(ErrorKind::does_not_fit, "the compiler for {} took {} of memory, more than the {} it may have",
                     slice_.name, to_string(resident), to_string(limits_.memory))
            .hinted("--max-memory: what the compiler itself may take on this machine");
      if (elapsed() > limits_.timeout)
        return error(ErrorKind::io, "the compiler for {} was not done after {}{}", slice_.name,
                     to_string(limits_.timeout), started_ ? "" : ", and not even loaded")
            .hinted(started_ ? "--timeout: how long it may take" : "systole doctor xla tries the plugin alone");
      if (limits_.stop && limits_.stop()) return error(ErrorKind::interrupted, "interrupted");
      if (!started_) started_ = TRY(files_.exists(kStartedFile));
      if (started_ && limits_.enough && limits_.enough()) {
        ended_early_ = true;
        return {};
      }
      if (limits_.progress) limits_.progress({elapsed(), resident, started_});
      std::this_thread::sleep_for(kPoll);
    }
    return {};
  }

  Status read_started() {
    if (!TRY(files_.exists(kStartedFile))) return {};
    const Node started = TRY(parse_json(TRY(read_text(files_, kStartedFile)), kStartedFile));
    said_.compiler.api = TRY(TRY(started.get("api"))->as_string());
    said_.compiler.stablehlo = TRY(TRY(started.get("stablehlo"))->as_string());
    said_.compiler.warning = TRY(TRY(started.get("warning"))->as_string());
    const std::int64_t limit = TRY(TRY(started.get("memory_limit"))->as_int(0));
    if (limit > 0) said_.compiler.memory_limit = Bytes(limit);
    return {};
  }

  Result<CompilerReport> answered() {
    const Node answer = TRY(parse_json(TRY(read_text(files_, kAnswerFile)), kAnswerFile));
    if (const Node* seconds = answer.find("seconds")) said_.time = Seconds(TRY(seconds->as_double()));
    if (const Node* refusal = answer.find("error")) {
      TRY(take_refusal(*refusal));
      return std::move(said_);
    }
    TRY(take_memory(*TRY(answer.get("memory"))));
    if (const Node* flops = answer.find("flops")) said_.flops = TRY(flops->as_double());
    if (const Node* bytes = answer.find("bytes accessed")) said_.bytes_accessed = TRY(bytes->as_double());
    if (const Node* format = answer.find("format")) said_.module_format = TRY(format->as_string());
    return std::move(said_);
  }

  // A plugin that cannot be used, or does not know the slice, is our error. A refusal of the program is an answer.
  Status take_refusal(const Node& refusal) {
    const std::string stage = TRY(TRY(refusal.get("stage"))->as_string());
    Error said = error(static_cast<ErrorKind>(TRY(TRY(refusal.get("kind"))->as_int(0, 20))), "{}",
                       TRY(TRY(refusal.get("message"))->as_string()))
                     .hinted(TRY(TRY(refusal.get("hint"))->as_string()));
    if (stage == "plugin") {
      said.kind = ErrorKind::unsupported;
      return said;
    }
    if (stage == "slice") {
      // The plugin's message, possibly of several lines, follows the name of our call.
      const std::size_t call = said.message.find("make the topology ");
      const std::size_t words = call == std::string::npos ? call : said.message.find(": ", call);
      if (words != std::string::npos) said.message.erase(0, words + 2);
      said.message = said.message.substr(0, said.message.find('\n'));
      return error(ErrorKind::not_found, "the compiler knows no slice '{}': {}", slice_.name, said.message)
          .hinted("one that it knows: " + slice_.example);
    }
    said_.refusal = std::move(said);
    return {};
  }

  Status take_memory(const Node& node) {
    pjrt::MemoryStats memory;
    const auto take = [&](const char* key, Bytes& bytes) -> Status {
      bytes = Bytes(TRY(TRY(node.get(key))->as_int()));
      return {};
    };
    TRY(take("arguments", memory.arguments));
    TRY(take("outputs", memory.outputs));
    TRY(take("aliased", memory.aliased));
    TRY(take("temporaries", memory.temporaries));
    TRY(take("host_arguments", memory.host_arguments));
    TRY(take("host_outputs", memory.host_outputs));
    TRY(take("host_temporaries", memory.host_temporaries));
    TRY(take("code", memory.code));
    TRY(take("peak", memory.peak));
    said_.memory = memory;
    return {};
  }

  const std::string& folder_;
  Store& files_;
  const Slice& slice_;
  const ChildLimits& limits_;
  const std::chrono::steady_clock::time_point began_;
  bool started_ = false, ended_early_ = false;
  Bytes peak_{};
  CompilerReport said_;
};

}  // namespace

Result<CompilerReport> compile_in_child(const std::vector<std::string>& child, const std::string& folder,
                                        const Slice& slice, const CompileRequest& request, const ChildLimits& limits) {
  const pjrt::PluginPlace place = TRY(pjrt::find_plugin(slice.plugin, request.plugins));
  const std::unique_ptr<Store> files = TRY(open_posix_store(folder));
  TRY(files->make_dirs(kDumpFolder));
  TRY(write_whole(*files, kModuleFile, request.code));
  TRY(write_whole(*files, kRequestFile, to_json(request_of(folder, slice, request))));
  CompilerReport said = TRY(Child(folder, *files, slice, limits).run(child));
  said.compiler.package = place.version;
  return said;
}

}  // namespace systole::prove

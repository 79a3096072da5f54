#include "predict/prove/prove.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "ground/base/hash.h"
#include "ground/base/number_from.h"
#include "ground/base/os_error.h"
#include "ground/pjrt/places.h"
#include "ground/store/store.h"
#include "predict/prove/child_files.h"
#include "predict/prove/dump.h"
#include "predict/prove/module_text.h"

namespace systole::prove {
namespace {

constexpr const char* kFormat = "systole proof 4";  // part of every key: a change invalidates all cached proofs

class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make(const std::string& parent) {
    std::string name = parent + "/systole-prove-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) return os_error(errno, "make a folder in", parent);
    return TemporaryFolder(std::move(name));
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

struct Layout {
  std::int64_t partitions = 1, replicas = 1;
  bool shardy = false;
};

// The user's options override the module's.
Result<Layout> layout_of(const ModuleText& module, const std::string& file, const Slice& slice,
                         const ProveOptions& options) {
  Layout layout;
  if (module.bytecode && ((!module.partitions && !options.partitions) || (!module.replicas && !options.replicas)))
    return error(ErrorKind::invalid, "of bytecode it cannot be read for how many devices it was written")
        .at({file, 0, 0})
        .hinted("--partitions N, --replicas N");
  layout.partitions = options.partitions ? *options.partitions : module.partitions.value_or(1);
  layout.replicas = options.replicas ? *options.replicas : module.replicas.value_or(1);
  layout.shardy = module.shardy;
  const std::int64_t devices = layout.partitions * layout.replicas;
  if (devices > slice.devices)
    return error(ErrorKind::invalid, "it was written for {} device{} ({} partition{} x {} replica{}), and {} has {}",
                 devices, devices == 1 ? "" : "s", layout.partitions, layout.partitions == 1 ? "" : "s",
                 layout.replicas, layout.replicas == 1 ? "" : "s", slice.name, slice.devices)
        .at({file, 0, 0})
        .hinted(fmt::format("--on a slice of {} devices or more", devices));
  return layout;
}

// A hash of everything that the compiler's result depends on.
std::string key_of(std::string_view code, const Slice& slice, const Layout& layout, const pjrt::PluginPlace& place,
                   const pjrt::CompilerFlags& flags) {
  std::error_code ignored;
  Hasher hasher;
  const auto add = [&](std::string_view text) { hasher.add(std::to_string(text.size()) + ":").add(text); };
  add(kFormat);
  add(code);
  add(place.path);
  add(place.version);
  add(std::to_string(std::filesystem::file_size(place.path, ignored)));
  add(slice.name);
  add(std::to_string(slice.cycles_per_second));
  add(fmt::format("{:a}", slice.bandwidth.count()));
  if (slice.network) add(to_string(*slice.network));
  for (const pjrt::NamedValue& option : slice.options) add(to_string(option));
  add(fmt::format("{} {} {}", layout.partitions, layout.replicas, layout.shardy));
  for (const auto& [name, value] : flags) add(fmt::format("{}={}{}", name, value.index(), pjrt::to_string(value)));
  return to_hex(hasher.digest());
}

std::int64_t leading_number(std::string_view text) { return number_from(text).value_or(-1); }

// MLIR's parser says "…:2:19: error: expected '('"; that location becomes one of the file.
Error placed(Error said, const std::string& file) {
  constexpr std::string_view kMark = ": error: ";
  const std::size_t mark = said.message.find(kMark);
  if (mark == std::string::npos) return std::move(said).at({file, 0, 0});
  const std::string_view before = std::string_view(said.message).substr(0, mark);
  const std::size_t second = before.rfind(':');
  const std::size_t first =
      second == 0 || second == std::string_view::npos ? std::string_view::npos : before.rfind(':', second - 1);
  if (first == std::string_view::npos) return std::move(said).at({file, 0, 0});
  const std::int64_t line = leading_number(before.substr(first + 1, second - first - 1));
  const std::int64_t col = leading_number(before.substr(second + 1));
  if (line < 1 || col < 0) return std::move(said).at({file, 0, 0});
  std::string words = said.message.substr(mark + kMark.size());
  words = words.substr(0, words.find('\n'));
  return error(said.kind, "{}", words).at({file, static_cast<int>(line), static_cast<int>(col)});
}

// The compiler's own sentence, without the name of our call.
std::string sentence(const std::string& message) {
  constexpr std::string_view kCode = "RESOURCE_EXHAUSTED: ";
  const std::size_t at = message.find(kCode);
  std::string words = at == std::string::npos ? message : message.substr(at + kCode.size());
  return words.substr(0, words.find('\n'));
}

// "custom call to NAME for platform CUDA".
std::string_view custom_call_of(std::string_view message) {
  constexpr std::string_view kCall = "custom call to ";
  const std::size_t at = message.find(kCall);
  if (at == std::string_view::npos) return {};
  const std::string_view name = message.substr(at + kCall.size());
  return name.substr(0, name.find(' '));
}

// Adds a location and a hint where the compiler gives none.
Error completed(Error said, std::string_view code) {
  if (const std::string_view target = custom_call_of(said.message); !target.empty()) {
    if (said.where.line == 0) said.where.line = line_of_custom_call(code, target).value_or(0);
    return std::move(said).hinted(
        "a custom call is a kernel of its vendor's: write it in StableHLO's ops, or take one that this compiler has");
  }
  if (const std::optional<ModuleWord> type = foreign_float(code)) {
    if (said.where.line == 0) said.where.line = type->line;
    return std::move(said).hinted(
        fmt::format("{} of line {} is none of StableHLO's types: f8E4M3FN and f8E5M2 are", type->word, type->line));
  }
  return said;
}

Error told(Error refusal, std::string_view code, const ModuleText& module, const CompilerFacts& compiler,
           const std::string& file) {
  if (module.bytecode && compare_versions(module.writer, compiler.stablehlo).value_or(0) > 0)
    return error(ErrorKind::unsupported, "{} wrote it, and {} reads StableHLO up to {}", module.writer,
                 compiler.package.empty() ? "this compiler" : compiler.package, compiler.stablehlo)
        .at({file, 0, 0})
        .hinted("write it for that version, or as text; tools/xla-plugins --list says which plugins there are");
  const bool of_module = refusal.kind == ErrorKind::invalid || refusal.kind == ErrorKind::unsupported ||
                         !custom_call_of(refusal.message).empty();
  return of_module ? completed(placed(std::move(refusal), file), code) : refusal;
}

CompiledMemory memory_of(const pjrt::MemoryStats& stats) {
  CompiledMemory memory;
  memory.arguments = stats.arguments;
  memory.outputs = stats.outputs;
  memory.aliased = stats.aliased;
  memory.temporaries = stats.temporaries;
  memory.host = stats.host_arguments + stats.host_outputs + stats.host_temporaries;
  return memory;
}

// The module after optimisation, of a complete compile.
Result<pjrt::HloModule> optimized_in(const std::string& folder, const std::string& format) {
  const std::unique_ptr<Store> files = TRY(open_posix_store(folder));
  return pjrt::read_hlo({format, TRY(read_text(*files, kOptimizedFile))});
}

Result<Proof> proof_from(CompilerReport said, const std::string& folder, const Slice& slice, std::string_view code,
                         const ModuleText& module, const std::string& file) {
  Proof proof;
  proof.compiler = fmt::format("{}, PJRT API {}", said.compiler.package.empty() ? slice.plugin : said.compiler.package,
                               said.compiler.api);
  proof.took = said.time;
  proof.took_memory = said.peak_resident;
  Dump dump = TRY(read_dump(folder + "/" + kDumpFolder));
  if (dump.memory) proof.memory = dump.memory;
  if (proof.memory) proof.memory->limit = said.compiler.memory_limit;
  if (dump.executed) proof.executed = *std::move(dump.executed);
  if (said.refusal) {
    if (said.refusal->kind != ErrorKind::does_not_fit)
      return told(*std::move(said.refusal), code, module, said.compiler, file);
    proof.refusal = sentence(said.refusal->message);
    return proof;
  }
  proof.fits = true;
  if (!said.memory) return proof;
  const Bytes on_chip = proof.memory ? proof.memory->on_chip : Bytes();
  proof.memory = memory_of(*said.memory);  // instead of the dump's, which alone has on-chip memory
  proof.memory->on_chip = on_chip;
  proof.memory->limit = said.compiler.memory_limit;
  proof.whole = true;
  proof.flops = said.flops;
  proof.bytes_accessed = said.bytes_accessed;
  if (said.module_format.empty()) return proof;
  const pjrt::HloModule optimized = TRY(optimized_in(folder, said.module_format));
  proof.executed = executed_of(optimized);
  if (slice.cycles_per_second > 0 && proof.executed.cycles > 0) {
    proof.compute = Seconds(proof.executed.cycles / slice.cycles_per_second);
    if (slice.network) proof.step = step_time(optimized, slice);
  }
  return proof;
}

}  // namespace

Result<Proved> prove(std::string_view code, const std::string& file, const Slice& slice, const ProveOptions& options,
                     ProofCache* cache, Clock& clock) {
  const ModuleText module = TRY(look_at(code, file));
  const Layout layout = TRY(layout_of(module, file, slice, options));
  const pjrt::PluginPlace place = TRY(pjrt::find_plugin(slice.plugin, options.plugins));
  const pjrt::CompilerFlags flags = pjrt::flags_over(slice.flags, options.flags);
  const std::string key = key_of(code, slice, layout, place, flags);
  Proved proved;
  if (cache != nullptr && !options.fresh) {
    std::optional<Proof> known = cache->find(key);
    // Without `fits` there is no complete compile to wait for.
    if (known && (known->whole || !options.whole || !known->fits)) {
      proved.proof = *std::move(known);
      proved.cached = true;
      return proved;
    }
  }
  const TemporaryFolder folder = TRY(TemporaryFolder::make(options.temporary));
  CompileRequest request{.code = code, .options = {}, .plugins = options.plugins};
  request.options.partitions = static_cast<int>(layout.partitions);
  request.options.replicas = static_cast<int>(layout.replicas);
  request.options.spmd = layout.partitions > 1;
  request.options.shardy = layout.shardy;
  request.options.flags = flags;
  if (const std::int64_t devices = layout.partitions * layout.replicas; devices > 1)
    for (std::int64_t device = 0; device < devices; ++device) request.options.devices.push_back(device);
  ChildLimits limits = options.limits;
  const std::string dump = folder.path() + "/" + kDumpFolder;
  if (!options.whole) limits.enough = [&dump] { return dump_is_whole(dump); };
  CompilerReport said = TRY(compile_in_child(options.child, folder.path(), slice, request, limits));
  if (!said.compiler.warning.empty())
    proved.notes.push_back(error(ErrorKind::unsupported, "{}", said.compiler.warning));
  proved.proof = TRY(proof_from(std::move(said), folder.path(), slice, code, module, file));
  proved.proof.slice = slice.name;
  proved.proof.slice_devices = slice.devices;
  proved.proof.partitions = layout.partitions;
  proved.proof.replicas = layout.replicas;
  for (const auto& [name, value] : flags) proved.proof.flags[name] = pjrt::to_string(value);
  proved.proof.made = clock.timestamp();
  if (cache == nullptr) return proved;
  if (const Status kept = cache->keep(key, proved.proof); !kept.ok()) proved.notes.push_back(kept.error());
  return proved;
}

}  // namespace systole::prove

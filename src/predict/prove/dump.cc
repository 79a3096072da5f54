// The TPU compiler writes module_NNNN.NAME.after_optimizations.hlo.pb after it lays out memory, then checks whether it
// fits. Only if it does, it writes after_optimizations_after_buffer_assignment.hlo.pb and generates code. A program may
// have small modules beside it: the largest is the program.

#include "predict/prove/dump.h"

#include <filesystem>
#include <fstream>

#include "ground/base/files.h"
#include "ground/pjrt/buffer_assignment.h"
#include "ground/pjrt/hlo_module.h"

namespace systole::prove {
namespace {

constexpr std::string_view kModule = ".after_optimizations.hlo.pb";
constexpr std::string_view kFits = ".after_optimizations_after_buffer_assignment.hlo.pb";
constexpr std::int64_t kMain = 0, kOnChip = 1, kHost = 5;  // memory numbers of the TPU compiler

// The largest file with this ending; "": none.
std::filesystem::path largest(const std::string& folder, std::string_view ending) {
  std::filesystem::path found;
  std::uintmax_t size = 0;
  std::error_code ignored;
  for (const std::filesystem::path& path : paths_in(folder)) {
    const std::uintmax_t bytes = std::filesystem::file_size(path, ignored);
    if (!path.filename().string().ends_with(ending) || (!found.empty() && bytes <= size)) continue;
    found = path;
    size = bytes;
  }
  return found;
}

CompiledMemory memory_of(const std::vector<pjrt::BufferAllocation>& buffers) {
  CompiledMemory memory;
  for (const pjrt::BufferAllocation& buffer : buffers) {
    if (buffer.memory == kHost) memory.host += buffer.size;
    if (buffer.memory == kOnChip) memory.on_chip += buffer.size;
    if (buffer.memory != kMain || buffer.is_of_thread || buffer.is_constant) continue;
    if (buffer.is_parameter) memory.arguments += buffer.size;
    if (buffer.is_output) memory.outputs += buffer.size;
    if (buffer.is_parameter && buffer.is_output) memory.aliased += buffer.size;
    if (!buffer.is_parameter && !buffer.is_output) memory.temporaries += buffer.size;
  }
  return memory;
}

}  // namespace

bool dump_is_whole(const std::string& folder) { return !largest(folder, kFits).empty(); }

Result<Dump> read_dump(const std::string& folder) {
  const std::filesystem::path path = largest(folder, kModule);
  if (path.empty()) return Dump{};
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  Dump dump;
  // Other compilers write no buffers.
  if (const Result<std::vector<pjrt::BufferAllocation>> buffers = pjrt::read_buffers(bytes); buffers.ok())
    dump.memory = memory_of(*buffers);
  // A HloProto begins with the module, like a HloModuleProtoWithConfig.
  dump.executed = executed_of(TRY(pjrt::read_hlo({"hlo_with_config", bytes})));
  return dump;
}

}  // namespace systole::prove

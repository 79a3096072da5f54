#pragma once
// The interface's larger structs (abi.h): compilers, executables, clients, buffers and execution.

#include "ground/pjrt/abi.h"

namespace systole::pjrt::abi {

// ---- topologies and compilers ----

struct TopologyCreate {
  static constexpr int kSlot = 82;
  static constexpr auto kSizes = always(56);
  Head head;
  const char* name = nullptr;
  std::size_t name_size = 0;
  const NamedValue* options = nullptr;
  std::size_t num_options = 0;
  TopologyRef* topology = nullptr;
};
struct Program {
  Head head{48, nullptr};
  char* code = nullptr;
  std::size_t code_size = 0;
  const char* format = nullptr;  // "mlir", "hlo", "hlo_with_config"
  std::size_t format_size = 0;
};
static_assert(sizeof(Program) == 48);
struct Compile {
  static constexpr int kSlot = 89;
  static constexpr auto kSizes = always(64);
  Head head;
  const TopologyRef* topology = nullptr;
  const Program* program = nullptr;
  const char* options = nullptr;
  std::size_t options_size = 0;
  ClientRef* client = nullptr;  // may be null
  ExecutableRef* executable = nullptr;
};
static_assert(sizeof(Compile) == 64);
struct ClientCompile {
  static constexpr int kSlot = 20;
  static constexpr auto kSizes = always(56);
  Head head;
  ClientRef* client = nullptr;
  const Program* program = nullptr;
  const char* options = nullptr;
  std::size_t options_size = 0;
  LoadedRef* executable = nullptr;
};
static_assert(sizeof(ClientCompile) == 56);

// ---- executables ----

struct ExecutableMemory {
  static constexpr int kSlot = 96;
  static constexpr Sizes<3> kSizes{{{72, 112}, {90, 120}, {104, 144}}};
  Head head;
  ExecutableRef* executable = nullptr;
  std::int64_t code = 0, arguments = 0, outputs = 0, aliased = 0, temporaries = 0;
  std::int64_t host_code = 0, host_arguments = 0, host_outputs = 0, host_aliased = 0, host_temporaries = 0;
  std::int64_t peak = 0;                                                       // since 72
  std::int64_t total = 0;                                                      // since 90
  std::int64_t total_allocated = 0, indefinite = 0, peak_without_padding = 0;  // since 104
};
static_assert(offsetof(ExecutableMemory, peak) + 8 == 112 && offsetof(ExecutableMemory, total) + 8 == 120 &&
              sizeof(ExecutableMemory) == 144);
struct ExecutableOptimized {
  static constexpr int kSlot = 48;
  static constexpr auto kSizes = always(32);
  Head head;
  ExecutableRef* executable = nullptr;
  Program* program = nullptr;  // called twice: for the size, then into our memory
};
struct ExecutableSerialize {
  static constexpr int kSlot = 49;
  static constexpr auto kSizes = always(56);
  Head head;
  const ExecutableRef* executable = nullptr;
  const char* bytes = nullptr;
  std::size_t bytes_size = 0;
  void* backing = nullptr;
  void (*free_backing)(void*) = nullptr;
};
static_assert(sizeof(ExecutableSerialize) == 56);
struct ExecutableLoad {
  static constexpr int kSlot = 56;
  static constexpr Sizes<2> kSizes{{{71, 64}, {106, 72}}};
  Head head;
  ClientRef* client = nullptr;
  const char* bytes = nullptr;
  std::size_t bytes_size = 0;
  LoadedRef* executable = nullptr;
  const char* options = nullptr;  // null: the options it was compiled with
  std::size_t options_size = 0;
  void* load_options = nullptr;
};
static_assert(offsetof(ExecutableLoad, options_size) + 8 == 64 && sizeof(ExecutableLoad) == 72);

// ---- clients, devices, buffers, execution ----

struct ClientCreate {
  static constexpr int kSlot = 10;
  static constexpr auto kSizes = always(88);
  Head head;
  const NamedValue* options = nullptr;
  std::size_t num_options = 0;
  void *get = nullptr, *get_argument = nullptr, *put = nullptr, *put_argument = nullptr;  // a shared key-value store
  ClientRef* client = nullptr;
  void *try_get = nullptr, *try_get_argument = nullptr;
};
static_assert(offsetof(ClientCreate, client) == 64 && sizeof(ClientCreate) == 88);
struct DeviceMemory {
  struct Optional {
    std::int64_t bytes = 0;
    bool is_set = false;
  };
  static constexpr int kSlot = 34;
  static constexpr Sizes<2> kSizes{{{0, 185}, {106, 201}}};
  Head head;
  DeviceRef* device = nullptr;
  std::int64_t in_use = 0;
  Optional peak_in_use, allocations, largest, limit, reserved, peak_reserved, reservable, largest_free, pool, peak_pool;
  Optional peak_allocated;
};
static_assert(offsetof(DeviceMemory, peak_pool) + 9 == 185 && offsetof(DeviceMemory, peak_allocated) + 9 == 201);
struct BufferFromHost {
  static constexpr int kSlot = 22;
  static constexpr auto kSizes = always(120);
  Head head;
  ClientRef* client = nullptr;
  const void* data = nullptr;
  int type = 0;
  const std::int64_t* dims = nullptr;
  std::size_t rank = 0;
  const std::int64_t* strides = nullptr;  // null: dense
  std::size_t num_strides = 0;
  enum Semantics : int { during_call, until_transferred, zero_copy, mutable_zero_copy } semantics = during_call;
  DeviceRef* device = nullptr;
  MemoryRef* memory = nullptr;
  void* layout = nullptr;
  Event* done = nullptr;  // when the host's bytes are no longer needed
  BufferRef* buffer = nullptr;
};
static_assert(sizeof(BufferFromHost) == 120);
// The memory layout of a value. Here only an order of dims, the fastest first, without tiles.
struct Layout {
  static constexpr auto kSizes = always(76);
  Head head;
  struct Tiled {
    Head head{56, nullptr};
    const std::int64_t* minor_to_major = nullptr;
    std::size_t rank = 0;
    const std::int64_t* tile_dims = nullptr;
    const std::size_t* tile_ranks = nullptr;
    std::size_t num_tiles = 0;
  } tiled;
  int type = 0;  // tiled
};
static_assert(offsetof(Layout, type) + 4 == 76);
struct BufferToHost {
  static constexpr int kSlot = 70;
  static constexpr auto kSizes = always(56);
  Head head;
  BufferRef* buffer = nullptr;
  Layout* layout = nullptr;  // null: the device's layout
  void* to = nullptr;        // null: asks for the size
  std::size_t to_size = 0;
  Event* event = nullptr;
};
static_assert(sizeof(BufferToHost) == 56);
struct ExecuteOptions {
  static constexpr Sizes<5> kSizes{{{64, 80}, {76, 88}, {78, 112}, {97, 120}, {106, 144}}};
  Head head;
  void *send = nullptr, *receive = nullptr;
  std::size_t num_send = 0, num_receive = 0;
  int launch = 0;
  const std::int64_t* kept = nullptr;  // indices of arguments that must not be donated
  std::size_t num_kept = 0;
  void* context = nullptr;
  const char* call_location = nullptr;
  std::size_t num_tasks = 0;
  int* tasks = nullptr;
  std::int64_t* incarnations = nullptr;
  void* slices = nullptr;
  bool row_major_callbacks = false;  // since some minor of 106 to 114; older ones read zeros in the same way
  void* output_callbacks = nullptr;
  std::size_t num_output_callbacks = 0;
};
static_assert(offsetof(ExecuteOptions, context) + 8 == 80 && offsetof(ExecuteOptions, incarnations) + 8 == 112 &&
              offsetof(ExecuteOptions, slices) + 8 == 120 && sizeof(ExecuteOptions) == 144);
struct Execute {
  static constexpr int kSlot = 55;
  static constexpr auto kSizes = always(80);
  Head head;
  LoadedRef* executable = nullptr;
  ExecuteOptions* options = nullptr;
  BufferRef* const* const* arguments = nullptr;  // [device][argument]
  std::size_t num_devices = 0, num_arguments = 0;
  BufferRef** const* outputs = nullptr;  // [device][output], in our memory
  Event** done = nullptr;                // [device]
  DeviceRef* device = nullptr;
};
static_assert(sizeof(Execute) == 80);

}  // namespace systole::pjrt::abi

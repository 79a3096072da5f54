#pragma once
// The binary interface of a PJRT plugin, as far as Systole uses it: a table of functions, each of which takes one
// struct and returns an error or null. Written from the interface's description (openxla/xla xla/pjrt/c/pjrt_c_api.h
// and its CHANGELOG, API 0.72 to 0.114) and checked against plugins by tests; no XLA header is needed.
//
// Every struct begins with its own size, which tells a plugin the caller's version. Structs and the table only grow at
// their end, and each growth increases the minor version: kSizes lists the struct sizes by minor version. A plugin
// refuses a struct shorter than its own and accepts a longer one.
//
// Only .cc files of this folder (and the tests' plugin) may include this.

#include <array>
#include <cstddef>
#include <cstdint>

namespace systole::pjrt::abi {

// Opaque objects owned by the plugin.
struct Error;
struct Event;
struct ClientRef;
struct DeviceRef;
struct DescriptionRef;
struct MemoryRef;
struct ExecutableRef;
struct LoadedRef;
struct BufferRef;
struct TopologyRef;

struct Head {
  std::size_t size = 0;
  void* extension = nullptr;
};

struct Size {
  int since;  // first minor version with this size
  std::size_t bytes;
};

template <std::size_t n>
using Sizes = std::array<Size, n>;
constexpr Sizes<1> always(std::size_t bytes) { return {Size{0, bytes}}; }

// The table: this header, then functions, each at its slot.
struct Api {
  Head head;  // size: of the whole table
  struct Version {
    Head head;
    int major, minor;
  } version;
  using Function = Error* (*)(void* args);
  Function functions[1];  // their number follows from head.size
};
static_assert(offsetof(Api, functions) == 40);

// A name and a value of one of five types.
struct NamedValue {
  Head head{56, nullptr};
  const char* name = nullptr;
  std::size_t name_size = 0;
  enum Type : int { text, whole, wholes, real, boolean } type = text;
  union {
    const char* as_text = nullptr;
    std::int64_t as_whole;
    const std::int64_t* as_wholes;
    float as_real;
    bool as_boolean;
  };
  std::size_t value_size = 0;  // characters, elements, or 1
};
static_assert(sizeof(NamedValue) == 56);

// ---- errors and the plugin ----

struct ErrorDestroy {
  static constexpr int kSlot = 0;
  static constexpr auto kSizes = always(24);
  Head head;
  Error* error = nullptr;
};
struct ErrorMessage {
  static constexpr int kSlot = 1;
  static constexpr auto kSizes = always(40);
  Head head;
  const Error* error = nullptr;
  const char* text = nullptr;
  std::size_t text_size = 0;
};
struct ErrorCode {  // absl's status codes
  static constexpr int kSlot = 2;
  static constexpr auto kSizes = always(28);
  Head head;
  const Error* error = nullptr;
  int code = 0;
};
static_assert(offsetof(ErrorCode, code) + 4 == 28);
struct PluginInitialize {
  static constexpr int kSlot = 3;
  static constexpr auto kSizes = always(16);
  Head head;
};
struct PluginAttributes {
  static constexpr int kSlot = 4;
  static constexpr auto kSizes = always(32);
  Head head;
  const NamedValue* attributes = nullptr;
  std::size_t num = 0;
};

// ---- calls on one object that return a list, a text or a number ----

template <int slot, typename Object, typename Element>
struct ListOf {  // object, then pointer and count
  static constexpr int kSlot = slot;
  static constexpr auto kSizes = always(40);
  Head head;
  Object* object = nullptr;
  Element const* list = nullptr;
  std::size_t num = 0;
};
template <int slot, typename Object>
using TextOf = ListOf<slot, Object, char>;
template <int slot, typename Object>
struct AttributesOf {  // here the count comes before the pointer
  static constexpr int kSlot = slot;
  static constexpr auto kSizes = always(40);
  Head head;
  Object* object = nullptr;
  std::size_t num = 0;
  const NamedValue* list = nullptr;
};
template <int slot, typename Object, typename Value>
struct ValueOf {
  static constexpr int kSlot = slot;
  static constexpr auto kSizes = always(24 + sizeof(Value));
  Head head;
  Object* object = nullptr;
  Value value{};
};
template <int slot, typename Object>
struct CallOn {  // destroy, wait, delete
  static constexpr int kSlot = slot;
  static constexpr auto kSizes = always(24);
  Head head;
  Object* object = nullptr;
};
static_assert(sizeof(TextOf<0, Event>) == 40 && sizeof(AttributesOf<0, Event>) == 40);
using BoolOfEvent = ValueOf<6, Event, bool>;  // offsetof cannot take a comma
static_assert(offsetof(BoolOfEvent, value) == 24);

using EventDestroy = CallOn<5, Event>;
using EventIsReady = BoolOfEvent;
using EventAwait = CallOn<8, Event>;
using ClientDestroy = CallOn<11, ClientRef>;
using ClientPlatform = TextOf<12, ClientRef>;
using ClientProcess = ValueOf<13, ClientRef, int>;
using ClientVersion = TextOf<14, ClientRef>;
using ClientDevices = ListOf<15, ClientRef, DeviceRef*>;
using ClientAddressable = ListOf<16, ClientRef, DeviceRef*>;
using DescriptionId = ValueOf<23, DescriptionRef, int>;
using DescriptionProcess = ValueOf<24, DescriptionRef, int>;
using DescriptionAttributes = AttributesOf<25, DescriptionRef>;
using DescriptionKind = TextOf<26, DescriptionRef>;
using DescriptionText = TextOf<28, DescriptionRef>;
using DeviceDescription = ValueOf<29, DeviceRef, DescriptionRef*>;
using DeviceHardwareId = ValueOf<31, DeviceRef, int>;
using ExecutableDestroy = CallOn<40, ExecutableRef>;
using ExecutableName = TextOf<41, ExecutableRef>;
using ExecutableReplicas = ValueOf<42, ExecutableRef, std::size_t>;
using ExecutablePartitions = ValueOf<43, ExecutableRef, std::size_t>;
using ExecutableNumOutputs = ValueOf<44, ExecutableRef, std::size_t>;
using ExecutableCodeSize = ValueOf<45, ExecutableRef, std::int64_t>;
using ExecutableCosts = AttributesOf<46, ExecutableRef>;
using LoadedDestroy = CallOn<50, LoadedRef>;
using LoadedExecutableOf = ValueOf<51, LoadedRef, ExecutableRef*>;
using LoadedDevices = ListOf<52, LoadedRef, DeviceRef*>;
using BufferDestroy = CallOn<58, BufferRef>;
using BufferType = ValueOf<59, BufferRef, int>;
using BufferDims = ListOf<60, BufferRef, std::int64_t>;
using BufferSize = ValueOf<64, BufferRef, std::size_t>;
using BufferDelete = CallOn<67, BufferRef>;
using BufferIsDeleted = ValueOf<68, BufferRef, bool>;
using BufferReady = ValueOf<72, BufferRef, Event*>;
using TopologyDestroy = CallOn<83, TopologyRef>;
using TopologyPlatform = TextOf<84, TopologyRef>;
using TopologyVersion = TextOf<85, TopologyRef>;
using TopologyDevices = ListOf<86, TopologyRef, DescriptionRef*>;
using ExecutableOutputTypes = ListOf<90, ExecutableRef, int>;
using ExecutableFingerprint = TextOf<94, ExecutableRef>;
using ClientTopology = ValueOf<95, ClientRef, TopologyRef*>;

struct TopologyAttributes {
  static constexpr int kSlot = 88;
  static constexpr auto kSizes = always(40);
  Head head;
  TopologyRef* object = nullptr;
  const NamedValue* list = nullptr;
  std::size_t num = 0;
};
struct ExecutableOutputDims {
  static constexpr int kSlot = 91;
  static constexpr auto kSizes = always(48);
  Head head;
  ExecutableRef* object = nullptr;
  std::size_t num = 0;
  const std::int64_t* dims = nullptr;  // of all outputs, concatenated
  const std::size_t* ranks = nullptr;  // one per output
};

// The struct size in this minor version: the last row at or below it; the first row for older versions.
template <typename Args>
constexpr std::size_t size_at(int minor) {
  std::size_t size = Args::kSizes.front().bytes;
  for (const Size& row : Args::kSizes)
    if (row.since <= minor) size = row.bytes;
  return size;
}

}  // namespace systole::pjrt::abi

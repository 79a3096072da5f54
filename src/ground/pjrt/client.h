#pragma once
// Devices at run time: buffers in their memory, and programs that run on them. All calls are asynchronous; each device
// executes them in call order, and an Event signals completion. Failures are reported when an event is waited for or a
// value is copied back.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/pjrt/topology.h"
#include "ground/tensor/shape.h"

namespace systole::pjrt {

class ClientHandle;
class LoadedHandle;
class EventHandle;
class BufferHandle;

// Signals the completion of an asynchronous call. Movable; destroying it does not wait.
class Event {
 public:
  explicit Event(std::unique_ptr<EventHandle> handle);
  Event(Event&&) noexcept;
  Event& operator=(Event&&) noexcept;
  ~Event();

  Result<bool> is_ready() const;
  Status wait() const;  // errors: those of the awaited call

 private:
  std::unique_ptr<EventHandle> handle_;
};

// A value in device memory. The destructor frees the memory once nothing uses it any more.
class Buffer {
 public:
  explicit Buffer(std::unique_ptr<BufferHandle> handle);
  Buffer(Buffer&&) noexcept;
  Buffer& operator=(Buffer&&) noexcept;
  ~Buffer();

  Result<std::optional<DType>> dtype() const;  // nothing: a type without a Systole dtype
  Result<Shape> shape() const;
  Result<Bytes> device_bytes() const;  // including the padding of its layout
  // Whether it was deleted or donated to an execution.
  Result<bool> is_deleted() const;
  Status remove();  // frees the memory now
  // When its content is available.
  Result<Event> ready() const;
  // Copies dense and row-major into `to`, which must stay valid until the event. REQUIRES: `to` has the size of the
  // value.
  Result<Event> copy_to(std::span<std::byte> to) const;

  const BufferHandle& handle() const { return *handle_; }

 private:
  std::unique_ptr<BufferHandle> handle_;
};

// Memory use of a device, in bytes, as its allocator counts it; nothing if it does not.
struct DeviceMemoryStats {
  Bytes in_use;
  std::optional<Bytes> peak, limit, largest_free, pool;
};

// The result of one execution on one device.
struct DeviceRun {
  std::vector<Buffer> outputs;
  Event done;
};

// A program loaded on its devices. Copies share state.
class LoadedExecutable {
 public:
  explicit LoadedExecutable(std::shared_ptr<LoadedHandle> handle) : handle_(std::move(handle)) {}

  bool is(const LoadedExecutable& other) const { return handle_ == other.handle_; }
  Result<Executable> executable() const;
  Result<std::vector<int>> devices() const;  // their numbers, in the order of run's arguments

  // `arguments[device][argument]`, borrowed. An argument that the program declares donated is deleted by the run,
  // unless its index is in `kept`, which costs a copy. Returns when the work is queued.
  // Errors: invalid (wrong number, shapes or types of arguments; a deleted argument), does_not_fit.
  Result<std::vector<DeviceRun>> run(const std::vector<std::vector<const Buffer*>>& arguments,
                                     std::span<const std::int64_t> kept = {}) const;

 private:
  std::shared_ptr<LoadedHandle> handle_;
};

// The plugin's devices as seen by this process. Copies share state. Thread-safe.
class Client {
 public:
  // Errors: those of the plugin: no device, no driver, the device is in use.
  static Result<Client> create(const Plugin& plugin, const std::vector<NamedValue>& options = {});

  Result<std::string> platform() const;
  Result<std::string> version() const;
  Result<int> process() const;
  Result<std::vector<DeviceDescription>> devices() const;  // of all processes
  Result<std::vector<DeviceDescription>> local() const;    // those of this process
  Result<Topology> topology() const;
  // `device`: an index into local(). Errors: invalid; unsupported: the device keeps no statistics.
  Result<DeviceMemoryStats> memory(int device) const;

  Result<LoadedExecutable> compile(const ProgramText& program, const CompileOptions& options) const;
  // Loads the result of Executable::serialized, from the same plugin, version and kind of device.
  Result<LoadedExecutable> load(std::string_view serialized) const;

  // Copies a dense row-major value to a device of local(). The bytes may be reused on return. REQUIRES: their number
  // matches the shape.
  Result<Buffer> upload(std::span<const std::byte> bytes, DType dtype, const Shape& shape, int device) const;
  // The same without a host copy: the bytes must stay valid until the event.
  struct Upload {
    Buffer buffer;
    Event done;
  };
  Result<Upload> upload_later(std::span<const std::byte> bytes, DType dtype, const Shape& shape, int device) const;

 private:
  explicit Client(std::shared_ptr<ClientHandle> handle) : handle_(std::move(handle)) {}
  std::shared_ptr<ClientHandle> handle_;
};

}  // namespace systole::pjrt

#pragma once
// Devices that are there: values in their memory, programs run on them. Everything is asked for at once and happens
// later, in the order asked for on each device; an Event says when. What fails meanwhile comes out where an event is
// waited for or a value is copied back.

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

// When something that was asked for is done. Movable; destroying it waits for nothing.
class Event {
 public:
  explicit Event(std::unique_ptr<EventHandle> handle);
  Event(Event&&) noexcept;
  Event& operator=(Event&&) noexcept;
  ~Event();

  Result<bool> is_ready() const;
  Status wait() const;  // Errors: what went wrong with what was waited for

 private:
  std::unique_ptr<EventHandle> handle_;
};

// A value in a device's memory; its destructor gives the memory back once nothing uses it any more.
class Buffer {
 public:
  explicit Buffer(std::unique_ptr<BufferHandle> handle);
  Buffer(Buffer&&) noexcept;
  Buffer& operator=(Buffer&&) noexcept;
  ~Buffer();

  Result<std::optional<DType>> dtype() const;  // nothing: a type that Systole has not
  Result<Shape> shape() const;
  Result<Bytes> device_bytes() const;  // with the padding of its layout
  // Was it deleted, or donated to an execution?
  Result<bool> is_deleted() const;
  Status remove();  // gives the memory back now
  // When its content is there.
  Result<Event> ready() const;
  // Dense and row-major, into memory that stays until the event. REQUIRES: `to` is as long as the value.
  Result<Event> copy_to(std::span<std::byte> to) const;

  const BufferHandle& handle() const { return *handle_; }

 private:
  std::unique_ptr<BufferHandle> handle_;
};

// Bytes of a device's memory, as its allocator counts them; nothing where it does not.
struct DeviceMemoryStats {
  Bytes in_use;
  std::optional<Bytes> peak, limit, largest_free, pool;
};

// What one execution on one device takes and gives.
struct DeviceRun {
  std::vector<Buffer> outputs;
  Event done;
};

// A program on its devices. Copies are the same one.
class LoadedExecutable {
 public:
  explicit LoadedExecutable(std::shared_ptr<LoadedHandle> handle) : handle_(std::move(handle)) {}

  bool is(const LoadedExecutable& other) const { return handle_ == other.handle_; }
  Result<Executable> executable() const;
  Result<std::vector<int>> devices() const;  // their numbers, in the order in which `run` takes them

  // `arguments[device][argument]`, borrowed. An argument that the program declares donated is gone afterwards, unless
  // its index stands in `kept`, which costs a copy. Returns when the work is queued.
  // Errors: invalid (number, shapes or types of the arguments; an argument that is gone), does_not_fit.
  Result<std::vector<DeviceRun>> run(const std::vector<std::vector<const Buffer*>>& arguments,
                                     std::span<const std::int64_t> kept = {}) const;

 private:
  std::shared_ptr<LoadedHandle> handle_;
};

// The plugin's devices, as this process may use them. Copies are the same one. Thread-safe.
class Client {
 public:
  // Errors: what the plugin says: no device, no driver, somebody else holds it.
  static Result<Client> create(const Plugin& plugin, const std::vector<NamedValue>& options = {});

  Result<std::string> platform() const;
  Result<std::string> version() const;
  Result<int> process() const;
  Result<std::vector<DeviceDescription>> devices() const;  // of all processes
  Result<std::vector<DeviceDescription>> local() const;    // those that this process may use
  Result<Topology> topology() const;
  // `device`: an index into local(). Errors: invalid; unsupported: the device does not count.
  Result<DeviceMemoryStats> memory(int device) const;

  Result<LoadedExecutable> compile(const ProgramText& program, const CompileOptions& options) const;
  // What Executable::serialized gave, from the same plugin, version and kind of device.
  Result<LoadedExecutable> load(std::string_view serialized) const;

  // A dense row-major value to a device of local(). The bytes may be reused at once. REQUIRES: their number fits the
  // shape.
  Result<Buffer> upload(std::span<const std::byte> bytes, DType dtype, const Shape& shape, int device) const;
  // The same without copying first: the bytes must stay until the event.
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

// Events, and buffers in device memory.

#include "ground/pjrt/client_handles.h"

namespace systole::pjrt {

Event::Event(std::unique_ptr<EventHandle> handle) : handle_(std::move(handle)) {}
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(Event&&) noexcept = default;
Event::~Event() = default;

Result<bool> Event::is_ready() const {
  return handle_->api().value_of<abi::EventIsReady>(handle_->get(), "tell whether work is done");
}

Status Event::wait() const {
  abi::EventAwait args;
  args.object = handle_->get();
  return handle_->api().call(args, "do what was asked for");
}

Buffer::Buffer(std::unique_ptr<BufferHandle> handle) : handle_(std::move(handle)) {}
Buffer::Buffer(Buffer&&) noexcept = default;
Buffer& Buffer::operator=(Buffer&&) noexcept = default;
Buffer::~Buffer() = default;

Result<std::optional<DType>> Buffer::dtype() const {
  return dtype_of(TRY(handle_->api().value_of<abi::BufferType>(handle_->get(), "tell a value's type")));
}

Result<Shape> Buffer::shape() const {
  const auto dims = TRY(handle_->api().list_of<abi::BufferDims>(handle_->get(), "tell a value's shape"));
  return Shape(dims.list, dims.list + dims.num);
}

Result<Bytes> Buffer::device_bytes() const {
  return Bytes(TRY(handle_->api().value_of<abi::BufferSize>(handle_->get(), "tell a value's size")));
}

Result<bool> Buffer::is_deleted() const {
  return handle_->api().value_of<abi::BufferIsDeleted>(handle_->get(), "tell whether a value is there");
}

Status Buffer::remove() {
  abi::BufferDelete args;
  args.object = handle_->get();
  return handle_->api().call(args, "delete a value");
}

Result<Event> Buffer::ready() const {
  abi::Event* event = TRY(handle_->api().value_of<abi::BufferReady>(handle_->get(), "tell when a value is there"));
  return event_of(*handle_, event);
}

Result<Event> Buffer::copy_to(std::span<std::byte> to) const {
  // Without a layout the value keeps the device's layout, which need not be row-major. Strides request row-major.
  const Shape dims = TRY(shape());
  const std::optional<DType> type = TRY(dtype());
  if (!type) return error(ErrorKind::unsupported, "a value of a type that Systole does not have cannot be copied");
  std::vector<std::int64_t> minor_to_major(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) minor_to_major[i] = static_cast<std::int64_t>(dims.size() - 1 - i);
  abi::Layout layout;
  handle_->api().size(layout);
  layout.tiled.minor_to_major = minor_to_major.data();
  layout.tiled.rank = minor_to_major.size();
  const std::int64_t expected = bytes_of(*type, dims).count();
  CHECK(static_cast<std::int64_t>(to.size()) == expected, "{} bytes for a value of {}", to.size(), expected);
  abi::BufferToHost args;
  args.buffer = handle_->get();
  args.layout = &layout;
  args.to = to.data();
  args.to_size = to.size();
  TRY(handle_->api().call(args, "copy a value from a device"));
  return event_of(*handle_, args.event);
}

}  // namespace systole::pjrt

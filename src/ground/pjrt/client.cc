#include "ground/pjrt/client.h"

#include "ground/pjrt/client_handles.h"

namespace systole::pjrt {
namespace {

Result<DeviceDescription> device_of(const Api& api, abi::DeviceRef* device) {
  return description_of(api, TRY(api.value_of<abi::DeviceDescription>(device, "describe a device")));
}

template <typename List>
Result<std::vector<DeviceDescription>> devices_of(const ClientHandle& client) {
  const auto all = TRY(client.api().list_of<List>(client.get(), "list its devices"));
  std::vector<DeviceDescription> result;
  for (abi::DeviceRef* device : std::span(all.list, all.num)) result.push_back(TRY(device_of(client.api(), device)));
  return result;
}

Result<abi::DeviceRef*> local_device(const ClientHandle& client, int index) {
  const auto all = TRY(client.api().list_of<abi::ClientAddressable>(client.get(), "list its devices"));
  if (index < 0 || static_cast<std::size_t>(index) >= all.num)
    return error(ErrorKind::invalid, "there is no device {}: this process has {}", index, all.num);
  return all.list[index];
}

// Begins to copy a value to a device; the result holds its buffer and the event when the bytes are no longer needed.
Result<abi::BufferFromHost> copied_in(const ClientHandle& client, std::span<const std::byte> bytes, DType dtype,
                                      const Shape& shape, int device, abi::BufferFromHost::Semantics semantics) {
  const std::int64_t expected = bytes_of(dtype, shape).count();
  CHECK(static_cast<std::int64_t>(bytes.size()) == expected, "{} bytes for a value of {}", bytes.size(), expected);
  abi::BufferFromHost args;
  args.client = client.get();
  args.data = bytes.data();
  args.type = type_number(dtype);
  args.dims = shape.data();
  args.rank = shape.size();
  args.semantics = semantics;
  args.device = TRY(local_device(client, device));
  TRY(client.api().call(args, "copy a value to a device"));
  return args;
}

std::optional<Bytes> given(const abi::DeviceMemory::Optional& value) {
  return value.is_set ? std::optional(Bytes(value.bytes)) : std::nullopt;
}

}  // namespace

Result<Client> Client::create(const Plugin& plugin, const std::vector<NamedValue>& options) {
  const std::vector<abi::NamedValue> theirs = borrowed(options);
  abi::ClientCreate args;
  args.options = theirs.data();
  args.num_options = theirs.size();
  TRY(plugin.api()->call(args, "open its devices"));
  return Client(std::make_shared<ClientHandle>(plugin.api(), args.client));
}

Result<std::string> Client::platform() const {
  return handle_->api().text_of<abi::ClientPlatform>(handle_->get(), "tell its platform");
}

Result<std::string> Client::version() const {
  return handle_->api().text_of<abi::ClientVersion>(handle_->get(), "tell its platform's version");
}

Result<int> Client::process() const {
  return handle_->api().value_of<abi::ClientProcess>(handle_->get(), "tell its process");
}

Result<std::vector<DeviceDescription>> Client::devices() const { return devices_of<abi::ClientDevices>(*handle_); }
Result<std::vector<DeviceDescription>> Client::local() const { return devices_of<abi::ClientAddressable>(*handle_); }

Result<Topology> Client::topology() const {
  abi::TopologyRef* topology = TRY(handle_->api().value_of<abi::ClientTopology>(handle_->get(), "tell its topology"));
  return Topology(std::make_shared<TopologyHandle>(handle_->shared_api(), topology, handle_));
}

Result<DeviceMemoryStats> Client::memory(int device) const {
  abi::DeviceMemory args;
  args.device = TRY(local_device(*handle_, device));
  TRY(handle_->api().call(args, "count a device's memory"));
  return DeviceMemoryStats{Bytes(args.in_use), given(args.peak_in_use), given(args.limit), given(args.largest_free),
                           given(args.pool)};
}

Result<LoadedExecutable> Client::compile(const ProgramText& program, const CompileOptions& options) const {
  const abi::Program theirs = program_of(program);
  const std::string message = serialized(options);
  abi::ClientCompile args;
  args.client = handle_->get();
  args.program = &theirs;
  args.options = message.data();
  args.options_size = message.size();
  TRY(handle_->api().call(args, "compile"));
  return LoadedHandle::loaded(handle_, args.executable);
}

Result<LoadedExecutable> Client::load(std::string_view serialized) const {
  abi::ExecutableLoad args;
  args.client = handle_->get();
  args.bytes = serialized.data();
  args.bytes_size = serialized.size();
  TRY(handle_->api().call(args, "load a program"));
  return LoadedHandle::loaded(handle_, args.executable);
}

Result<Client::Upload> Client::upload_later(std::span<const std::byte> bytes, DType dtype, const Shape& shape,
                                            int device) const {
  const abi::BufferFromHost args =
      TRY(copied_in(*handle_, bytes, dtype, shape, device, abi::BufferFromHost::until_transferred));
  return Upload{buffer_of(handle_, args.buffer), event_of(handle_, args.done)};
}

Result<Buffer> Client::upload(std::span<const std::byte> bytes, DType dtype, const Shape& shape, int device) const {
  const abi::BufferFromHost args =
      TRY(copied_in(*handle_, bytes, dtype, shape, device, abi::BufferFromHost::during_call));
  const Event done = event_of(handle_, args.done);
  return buffer_of(handle_, args.buffer);
}

}  // namespace systole::pjrt

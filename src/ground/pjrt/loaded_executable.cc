// Running a program. Source: openxla/xla xla/pjrt/c/pjrt_c_api.h, PJRT_LoadedExecutable_Execute.

#include "ground/pjrt/client_handles.h"

namespace systole::pjrt {

Result<LoadedExecutable> LoadedHandle::loaded(std::shared_ptr<ClientHandle> client, abi::LoadedRef* executable) {
  std::shared_ptr<LoadedHandle> handle(new LoadedHandle(std::move(client), executable));
  const LoadedExecutable result(handle);
  handle->num_devices_ = TRY(result.devices()).size();
  abi::ExecutableRef* described =
      TRY(handle->api().value_of<abi::LoadedExecutableOf>(executable, "describe a program"));
  const ExecutableHandle owned(handle->shared_api(), described);
  handle->num_outputs_ = TRY(handle->api().value_of<abi::ExecutableNumOutputs>(described, "count its outputs"));
  return result;
}

Result<Executable> LoadedExecutable::executable() const {
  abi::ExecutableRef* executable =
      TRY(handle_->api().value_of<abi::LoadedExecutableOf>(handle_->get(), "describe a program"));
  return Executable(std::make_shared<ExecutableHandle>(handle_->shared_api(), executable, handle_));
}

Result<std::vector<int>> LoadedExecutable::devices() const {
  const Api& api = handle_->api();
  const auto all = TRY(api.list_of<abi::LoadedDevices>(handle_->get(), "list a program's devices"));
  std::vector<int> result;
  for (abi::DeviceRef* device : std::span(all.list, all.num)) {
    abi::DescriptionRef* description = TRY(api.value_of<abi::DeviceDescription>(device, "describe a device"));
    result.push_back(TRY(api.value_of<abi::DescriptionId>(description, "tell a device's number")));
  }
  return result;
}

Result<std::vector<DeviceRun>> LoadedExecutable::run(const std::vector<std::vector<const Buffer*>>& arguments,
                                                     std::span<const std::int64_t> kept) const {
  const Api& api = handle_->api();
  const std::size_t num_devices = arguments.size();
  const std::size_t num_arguments = num_devices == 0 ? 0 : arguments.front().size();
  // The plugin trusts both counts: too few arguments would be read out of bounds.
  if (num_devices != handle_->num_devices())
    return error(ErrorKind::invalid, "a program of {} devices is given arguments of {}", handle_->num_devices(),
                 num_devices);
  std::vector<std::vector<abi::BufferRef*>> theirs(num_devices);
  std::vector<abi::BufferRef* const*> rows;
  for (std::size_t i = 0; i < num_devices; ++i) {
    if (arguments[i].size() != num_arguments)
      return error(ErrorKind::invalid, "device {} is given {} arguments, device 0 {}", i, arguments[i].size(),
                   num_arguments);
    for (const Buffer* buffer : arguments[i]) theirs[i].push_back(buffer->handle().get());
    rows.push_back(theirs[i].data());
  }
  std::vector<std::vector<abi::BufferRef*>> outputs(num_devices, std::vector<abi::BufferRef*>(handle_->num_outputs()));
  std::vector<abi::BufferRef**> output_rows;
  for (auto& row : outputs) output_rows.push_back(row.data());
  std::vector<abi::Event*> done(num_devices);

  abi::ExecuteOptions options;
  api.size(options);
  options.kept = kept.data();
  options.num_kept = kept.size();
  abi::Execute args;
  args.executable = handle_->get();
  args.options = &options;
  args.arguments = rows.data();
  args.num_devices = num_devices;
  args.num_arguments = num_arguments;
  args.outputs = output_rows.data();
  args.done = done.data();
  TRY(api.call(args, "run a program"));

  std::vector<DeviceRun> result;
  for (std::size_t i = 0; i < num_devices; ++i) {
    std::vector<Buffer> mine;
    for (abi::BufferRef* buffer : outputs[i]) mine.push_back(buffer_of(handle_->client(), buffer));
    result.push_back(DeviceRun{std::move(mine), event_of(handle_->client(), done[i])});
  }
  return result;
}

}  // namespace systole::pjrt

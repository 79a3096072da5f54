#include "ground/pjrt/topology.h"

#include <span>

#include "ground/pjrt/handles.h"

namespace systole::pjrt {

abi::Program program_of(const ProgramText& program) {
  abi::Program result;
  result.code = const_cast<char*>(program.code.data());  // not copied; the plugin only reads it
  result.code_size = program.code.size();
  result.format = program.format.data();
  result.format_size = program.format.size();
  return result;
}

Result<DeviceDescription> description_of(const Api& api, abi::DescriptionRef* description) {
  DeviceDescription result;
  result.id = TRY(api.value_of<abi::DescriptionId>(description, "tell a device's number"));
  result.process = TRY(api.value_of<abi::DescriptionProcess>(description, "tell a device's process"));
  result.kind = TRY(api.text_of<abi::DescriptionKind>(description, "tell a device's kind"));
  result.text = TRY(api.text_of<abi::DescriptionText>(description, "describe a device"));
  const auto all = TRY(api.list_of<abi::DescriptionAttributes>(description, "tell a device's attributes"));
  result.attributes = named_values(all.list, all.num);
  return result;
}

Result<Topology> Topology::create(const Plugin& plugin, const std::string& name,
                                  const std::vector<NamedValue>& options) {
  const std::vector<abi::NamedValue> theirs = borrowed(options);
  abi::TopologyCreate args;
  args.name = name.data();
  args.name_size = name.size();
  args.options = theirs.data();
  args.num_options = theirs.size();
  TRY(plugin.api()->call(args, name.empty() ? "make a topology" : "make the topology " + name));
  return Topology(std::make_shared<TopologyHandle>(plugin.api(), args.topology));
}

Result<std::string> Topology::platform() const {
  return handle_->shared_api()->text_of<abi::TopologyPlatform>(handle_->get(), "tell its platform");
}

Result<std::string> Topology::version() const {
  return handle_->shared_api()->text_of<abi::TopologyVersion>(handle_->get(), "tell its platform's version");
}

Result<std::vector<DeviceDescription>> Topology::devices() const {
  const Api& api = *handle_->shared_api();
  const auto all = TRY(api.list_of<abi::TopologyDevices>(handle_->get(), "list its devices"));
  std::vector<DeviceDescription> result;
  for (abi::DescriptionRef* description : std::span(all.list, all.num))
    result.push_back(TRY(description_of(api, description)));
  return result;
}

Result<std::vector<NamedValue>> Topology::attributes() const {
  const auto all =
      TRY(handle_->shared_api()->list_of<abi::TopologyAttributes>(handle_->get(), "tell the topology's attributes"));
  return named_values(all.list, all.num);
}

Result<Executable> Topology::compile(const ProgramText& program, const CompileOptions& options) const {
  const abi::Program theirs = program_of(program);
  const std::string message = serialized(options);
  abi::Compile args;
  args.topology = handle_->get();
  args.program = &theirs;
  args.options = message.data();
  args.options_size = message.size();
  TRY(handle_->shared_api()->call(args, "compile"));
  return Executable(std::make_shared<ExecutableHandle>(handle_->shared_api(), args.executable));
}

}  // namespace systole::pjrt

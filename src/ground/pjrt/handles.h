#pragma once
// The plugin's objects behind this folder's classes.

#include "ground/pjrt/abi_calls.h"
#include "ground/pjrt/api.h"
#include "ground/pjrt/executable.h"
#include "ground/pjrt/topology.h"
#include "ground/tensor/dtype.h"

namespace systole::pjrt {

class ClientHandle : public Owned<abi::ClientRef, abi::ClientDestroy> {
 public:
  using Owned::Owned;
};

// An executable of a client's program keeps that program alive: XLA's CPU plugin would read it after it was freed.
class ExecutableHandle : public Owned<abi::ExecutableRef, abi::ExecutableDestroy> {
 public:
  ExecutableHandle(std::shared_ptr<const Api> api, abi::ExecutableRef* executable,
                   std::shared_ptr<const void> program = nullptr)
      : Owned(std::move(api), executable), program_(std::move(program)) {}

 private:
  std::shared_ptr<const void> program_;
};

// Our own topology, or one that belongs to a client, which is then kept alive.
class TopologyHandle {
 public:
  TopologyHandle(std::shared_ptr<const Api> api, abi::TopologyRef* topology,
                 std::shared_ptr<ClientHandle> client = nullptr)
      : api_(std::move(api)), topology_(topology), client_(std::move(client)) {}
  TopologyHandle(const TopologyHandle&) = delete;
  TopologyHandle& operator=(const TopologyHandle&) = delete;
  ~TopologyHandle() {
    if (client_ == nullptr) api_->destroy<abi::TopologyDestroy>(topology_);
  }
  abi::TopologyRef* get() const { return topology_; }
  const std::shared_ptr<const Api>& shared_api() const { return api_; }

 private:
  std::shared_ptr<const Api> api_;
  abi::TopologyRef* topology_;
  std::shared_ptr<ClientHandle> client_;
};

abi::Program program_of(const ProgramText& program);  // borrows
Result<DeviceDescription> description_of(const Api& api, abi::DescriptionRef* description);

// XLA's number of an element type (PJRT_Buffer_Type) and back.
int type_number(DType dtype);
std::optional<DType> dtype_of(int type_number);

}  // namespace systole::pjrt

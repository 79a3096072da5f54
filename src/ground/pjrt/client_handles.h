#pragma once
// The plugin's objects behind client.h. Objects of a client keep the client alive.

#include "ground/pjrt/client.h"
#include "ground/pjrt/handles.h"

namespace systole::pjrt {

class EventHandle : public Owned<abi::Event, abi::EventDestroy> {
 public:
  EventHandle(std::shared_ptr<ClientHandle> client, abi::Event* event)
      : Owned(client->shared_api(), event), client_(std::move(client)) {}

 private:
  std::shared_ptr<ClientHandle> client_;
};

class BufferHandle : public Owned<abi::BufferRef, abi::BufferDestroy> {
 public:
  BufferHandle(std::shared_ptr<ClientHandle> client, abi::BufferRef* buffer)
      : Owned(client->shared_api(), buffer), client_(std::move(client)) {}
  const std::shared_ptr<ClientHandle>& client() const { return client_; }

 private:
  std::shared_ptr<ClientHandle> client_;
};

class LoadedHandle : public Owned<abi::LoadedRef, abi::LoadedDestroy> {
 public:
  // Queries once what every run needs. Errors: those of the plugin.
  static Result<LoadedExecutable> loaded(std::shared_ptr<ClientHandle> client, abi::LoadedRef* executable);

  const std::shared_ptr<ClientHandle>& client() const { return client_; }
  std::size_t num_devices() const { return num_devices_; }
  std::size_t num_outputs() const { return num_outputs_; }

 private:
  LoadedHandle(std::shared_ptr<ClientHandle> client, abi::LoadedRef* executable)
      : Owned(client->shared_api(), executable), client_(std::move(client)) {}
  std::shared_ptr<ClientHandle> client_;
  std::size_t num_devices_ = 0, num_outputs_ = 0;
};

inline Event event_of(const std::shared_ptr<ClientHandle>& client, abi::Event* event) {
  return Event(std::make_unique<EventHandle>(client, event));
}
inline Event event_of(const BufferHandle& buffer, abi::Event* event) { return event_of(buffer.client(), event); }
inline Buffer buffer_of(const std::shared_ptr<ClientHandle>& client, abi::BufferRef* buffer) {
  return Buffer(std::make_unique<BufferHandle>(client, buffer));
}

}  // namespace systole::pjrt

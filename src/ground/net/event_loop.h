#pragma once
// Owners of libevent's objects, for the files whose thread runs its loop.

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <memory>
#include <new>
#include <string_view>

#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

// Throws what libevent has no memory for.
template <typename T>
T* made(T* pointer) {
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}

inline void free_link(bufferevent* link) { bufferevent_free(link); }
template <auto free_it>
struct Frees {
  template <typename T>
  void operator()(T* held) const {
    free_it(held);
  }
};
using HeldBase = std::unique_ptr<event_base, Frees<event_base_free>>;
using HeldEvent = std::unique_ptr<event, Frees<event_free>>;
using HeldLink = std::unique_ptr<bufferevent, Frees<free_link>>;
using HeldListener = std::unique_ptr<evconnlistener, Frees<evconnlistener_free>>;

inline timeval timeval_of(Seconds duration) {
  const auto micros = static_cast<std::int64_t>(std::max(duration.count(), 0.0) * 1e6);
  return {static_cast<time_t>(micros / 1'000'000), static_cast<suseconds_t>(micros % 1'000'000)};
}

// The first bytes, in one piece; valid until the buffer changes.
inline std::string_view front_of(evbuffer* buffer, std::size_t size) {
  const unsigned char* const bytes = evbuffer_pullup(buffer, static_cast<ev_ssize_t>(size));
  return {reinterpret_cast<const char*>(made(bytes)), size};
}

// A loop of one thread. Errors: io.
inline Result<HeldBase> make_event_base() {
  static const bool quiet = (event_set_log_callback([](int, const char*) {}), true);
  (void)quiet;
  event_config* const config = made(event_config_new());
  event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV);
  HeldBase base(event_base_new_with_config(config));
  event_config_free(config);
  if (base == nullptr) return error(ErrorKind::io, "libevent finds no way to wait for sockets");
  return base;
}

}  // namespace systole

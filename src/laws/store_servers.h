#pragma once
// Servers of object stores on loopback, for the campaign of faults (store_campaign_test.cc): fake-gcs-server, moto and
// s3s-fs, which others wrote, and the two twins. Each says what it gets wrong, so that no fault is tried whose harm
// would be the server's own.

#include <functional>
#include <memory>
#include <string>

#include "ground/store/store_access.h"
#include "ground/store/testing/faulty_proxy.h"

namespace systole {

struct StoreServer {
  std::string name;    // with its version
  std::string scheme;  // "gs", "s3"
  int port = 0;
  // Makes an empty bucket, and returns its name. Those of before may be gone, and the port may be another.
  std::function<std::string(StoreServer&)> new_bucket;
  // One of `large_in` trials sends objects in several parts: parts of `part` bytes, the smallest that the server takes,
  // and, if those are not small, a tensor of `large` bytes.
  std::size_t part = 0;
  std::int64_t large = 0;
  int large_in = 1;
  // Whether this server is right after that fault of that request.
  std::function<bool(const StubRequest&, ProxyFault)> takes = [](const StubRequest&, ProxyFault) { return true; };
  FaultyProxy::Instead instead = {};
  std::shared_ptr<void> held = {};  // the server itself
};

// With keys, if it checks them, and waits between two tries that take no time. `seed`: of those waits.
StoreAccess access_to(const StoreServer& server, const std::string& endpoint, std::size_t part, std::uint64_t seed);

// Errors: not_found, with how it is installed; others, it is there and does not start. In make test-long they are
// installed first; moto always.
Result<StoreServer> start_fake_gcs();
Result<StoreServer> start_moto();
Result<StoreServer> start_s3s_fs();
StoreServer gcs_twin_server();
StoreServer s3_twin_server();

}  // namespace systole

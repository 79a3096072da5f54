#include "laws/store_servers.h"

#include <filesystem>

#include "ground/base/testing/files.h"
#include "ground/base/testing/places.h"
#include "ground/net/socket.h"
#include "ground/process/capture.h"
#include "ground/process/spawn.h"
#include "ground/store/testing/gcs_twin.h"
#include "ground/store/testing/s3_twin.h"
#include "laws/test_length.h"

namespace systole {
namespace {

class OneKey : public AwsKeySource {
 public:
  explicit OneKey(AwsKeys keys) : keys_(std::move(keys)) {}
  Result<AwsKeys> keys() override { return keys_; }

 private:
  const AwsKeys keys_;
};

// Sleeps in no time; signatures have the date of today.
class QuickClock : public Clock {
 public:
  Seconds now() override { return fake_.now(); }
  std::chrono::system_clock::time_point calendar() override { return std::chrono::system_clock::now(); }
  void sleep(Seconds duration) override { fake_.sleep(duration); }

 private:
  FakeClock fake_;
};

std::string oracle(const std::string& name) { return fmt::format("{}/oracles/{}", SYSTOLE_BINARY_DIR, name); }

// What ends the program when the last copy of the server goes, and then its folder.
struct Running {
  std::shared_ptr<TemporaryFolder> folder;
  std::optional<Process> process;
};

// not_found is for what cannot be installed alone: who has a server that does not start wants to know it.
template <typename T>
Result<T> never_absent(Result<T> done) {
  if (done.ok() || done.error().kind != ErrorKind::not_found) return done;
  return error(ErrorKind::io, "{}", done.error().message);
}

Result<std::shared_ptr<Running>> run(Command command, std::shared_ptr<TemporaryFolder> folder = {}) {
  command.out = command.err = ChildStream::null();
  command.dies_with_parent = true;
  auto running = std::make_shared<Running>();
  running->folder = std::move(folder);
  running->process.emplace(TRY(never_absent(Process::start(command))));
  return running;
}

// Errors: not_found, it cannot be installed here; io, the script is wrong.
Status install(std::vector<std::string> argv, Seconds patience) {
  const std::string script = argv[0];
  const Captured done = TRY(never_absent(run_captured({.argv = std::move(argv)}, {.timeout = patience})));
  if (done.exit.ok()) return {};
  return error(done.exit.code == 3 ? ErrorKind::not_found : ErrorKind::io, "{}: {}", script, done.err);
}

// Installs it in make test-long, and says whether it is there.
Status look_for(const std::string& script, const std::string& name, const std::string& program) {
  const std::string folder = oracle(name), path = fmt::format("tools/oracles/{}", script);
  if (laws::is_long()) return install({fmt::format("{}/{}", SYSTOLE_SOURCE_DIR, path), folder}, Seconds(2400.0));
  if (std::filesystem::exists(folder + "/" + program)) return {};
  return error(ErrorKind::not_found, "no {}: {} {}", name, path, folder);
}

// Sends it until the server has begun to answer.
Status make_bucket(const HttpRequest& request) {
  HttpPool pool({});
  const HttpSent made =
      TRY(send_with_retries(pool, {.first = Seconds(0.05), .most = Seconds(0.2), .total = Seconds(30.0)}, *real_clock(),
                            [&]() -> Result<HttpRequest> { return request; }));
  if (made.reply.status == 200) return {};
  return error(ErrorKind::io, "{}: {} {}", request.url, made.reply.status, made.reply.body);
}

// "bucket-1", "bucket-2", ...
std::function<std::string(StoreServer&)> buckets(std::function<HttpRequest(const std::string&)> request) {
  return [request = std::move(request), count = std::make_shared<int>(0)](StoreServer&) {
    const std::string name = fmt::format("bucket-{}", ++*count);
    make_bucket(request(name)).value();
    return name;
  };
}

}  // namespace

StoreAccess access_to(const StoreServer& server, const std::string& endpoint, std::size_t part, std::uint64_t seed) {
  StoreAccess access;
  access.clock = std::make_shared<QuickClock>();
  access.retries = {.first = Seconds(0.25), .most = Seconds(1.0), .total = Seconds(1.5), .seed = seed | 1};
  access.gcs = [=]() -> Result<GcsAccess> {
    return GcsAccess{.endpoint = endpoint, .part = static_cast<std::int64_t>(part), .parallel = 1};
  };
  access.s3 = [=]() -> Result<S3Access> {
    S3Access s3;
    s3.keys = std::make_shared<OneKey>(AwsKeys{S3Twin::id(), S3Twin::secret(), ""});
    s3.endpoint = endpoint;
    s3.part = part;
    s3.parallel = 1;
    return s3;
  };
  return access;
}

Result<StoreServer> start_fake_gcs() {
  TRY(look_for("install-fake-gcs", "fake-gcs", "fake-gcs-server"));
  StoreServer server{.name = "fake-gcs-server 1.56.1", .scheme = "gs", .port = TRY(free_port())};
  const std::string at = fmt::format("127.0.0.1:{}", server.port);
  server.held = TRY(run({.argv = {oracle("fake-gcs") + "/fake-gcs-server", "-scheme", "http", "-host", "127.0.0.1",
                                  "-port", std::to_string(server.port), "-backend", "memory", "-public-host", at,
                                  "-external-url", "http://" + at}}));
  server.new_bucket = buckets([at](const std::string& name) {
    return HttpRequest{.method = "POST",
                       .url = fmt::format("http://{}/storage/v1/b?project=p", at),
                       .headers = {{"Content-Type", "application/json"}},
                       .body = fmt::format(R"({{"name": "{}"}})", name)};
  });
  server.part = 256 << 10;
  server.large = 640 << 10;
  server.large_in = 8;
  // A part of a resumable upload that is sent again, or whose status is asked for, as it must be after any other fault,
  // ends the upload there.
  server.takes = [](const StubRequest& request, ProxyFault fault) {
    const bool is_part = request.method == "PUT" && request.path.find("/upload/") != std::string::npos;
    return !is_part || fault == ProxyFault::delayed;
  };
  return server;
}

Result<StoreServer> start_moto() {
  const std::string packages = oracle("s3");
  TRY(install({SYSTOLE_SOURCE_DIR "/tools/oracles/install", "s3", packages}, Seconds(600.0)));
  StoreServer server{.name = "moto 5.2.5", .scheme = "s3", .port = TRY(free_port())};
  server.held = TRY(run({.argv = {"python3", "-m", "moto.server", "-H", "127.0.0.1", "-p", std::to_string(server.port)},
                         .env = {{"PYTHONPATH", packages}, {"S3_UPLOAD_PART_MIN_SIZE", "1"}}}));
  server.new_bucket = buckets([port = server.port](const std::string& name) {
    return HttpRequest{
        .method = "PUT",
        .url = fmt::format("http://127.0.0.1:{}/{}", port, name),
        .headers = {{"Content-Length", "0"},
                    {"Authorization", "AWS4-HMAC-SHA256 Credential=A/20260101/us-east-1/s3/aws4_request"}}};
  });
  server.part = 160;
  server.large_in = 4;
  return server;
}

Result<StoreServer> start_s3s_fs() {
  TRY(look_for("install-s3s-fs", "s3s-fs", "bin/s3s-fs"));
  StoreServer server{.name = "s3s-fs 0.14.1", .scheme = "s3", .port = TRY(free_port())};
  auto own = std::make_shared<TemporaryFolder>();
  const std::string folder = own->path();
  server.held =
      TRY(run({.argv = {oracle("s3s-fs") + "/bin/s3s-fs", "--host", "127.0.0.1", "--port", std::to_string(server.port),
                        "--access-key", S3Twin::id(), "--secret-key", S3Twin::secret(), folder},
               .env = {{"RUST_LOG", "off"}}},
              std::move(own)));
  TRY(connect_to({"127.0.0.1", server.port}, deadline_after(Seconds(20.0))));
  server.new_bucket = [folder, count = std::make_shared<int>(0)](StoreServer&) {
    const std::string name = fmt::format("bucket-{}", ++*count);
    std::filesystem::create_directory(folder + "/" + name);
    return name;
  };
  server.part = 5 << 20;  // smaller ones are refused (EntityTooSmall)
  server.large = (5 << 20) + 1000;
  server.large_in = 40;
  // It has no ListMultipartUploads (501), without which no sweep begins: the proxy answers that there is none.
  server.instead = [](const StubRequest& request) -> std::optional<std::string> {
    if (request.method != "GET" || !request.asks("uploads=")) return std::nullopt;
    return "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated></ListMultipartUploadsResult>";
  };
  return server;
}

namespace {

int port_of(const std::string& url) { return std::atoi(url.substr(url.rfind(':') + 1).c_str()); }

}  // namespace

StoreServer gcs_twin_server() {
  StoreServer server{.name = "twin of Cloud Storage", .scheme = "gs"};
  server.new_bucket = [](StoreServer& own) {
    const auto twin = std::make_shared<GcsTwin>("bucket");
    own.port = port_of(twin->url());
    own.held = twin;
    return std::string("bucket");
  };
  server.part = 256 << 10;
  server.large = 640 << 10;
  server.large_in = 8;
  return server;
}

StoreServer s3_twin_server() {
  StoreServer server{.name = "twin of S3", .scheme = "s3"};
  server.new_bucket = [](StoreServer& own) {
    const auto twin = std::make_shared<S3Twin>();
    own.port = port_of(twin->url());
    own.held = twin;
    return std::string(S3Twin::kBucket);
  };
  server.part = 160;
  server.large_in = 4;
  return server;
}

}  // namespace systole

// The server over TLS, with certificates generated for this test.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>

#include "ground/net/http_client.h"
#include "ground/net/http_server.h"
#include "ground/net/testing/http_wire.h"
#include "ground/process/capture.h"

namespace systole {
namespace {

class HttpsServing : public testing::Test {
 protected:
  void SetUp() override {
    if (!find_program("openssl").ok()) GTEST_SKIP() << "no openssl";
    std::string name = (std::filesystem::temp_directory_path() / "systole-https-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    make("server");
    make("other");
    openssl("pkey -in server.key -aes256 -passout pass:word -out locked.key");
  }
  void TearDown() override {
    server_.reset();
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  void make(const std::string& name) const {
    openssl(
        fmt::format("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {0}.key -out {0}.pem -days 2 "
                    "-subj /CN={0} -addext subjectAltName=IP:127.0.0.1",
                    name));
  }
  void openssl(const std::string& words) const {
    Command command{.argv = {"/bin/sh", "-c", "umask 077; openssl " + words}, .cwd = folder_};
    const Captured made = run_captured(std::move(command)).value();
    ASSERT_TRUE(made.exit.ok()) << made.err;
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  Result<std::unique_ptr<HttpServer>> started(const std::string& certificate, const std::string& key,
                                              Seconds head_time = Seconds(20.0)) {
    HttpServerOptions options;
    options.certificate = certificate.empty() ? "" : path(certificate);
    options.key = key.empty() ? "" : path(key);
    options.limits.head_time = head_time;
    options.routes = {{"POST", "/echo",
                       [](HttpServerRequest request, HttpResponder to) { to.send({.body = std::move(request.body)}); }},
                      {"GET", "/stream", [this](const HttpServerRequest&, HttpResponder to) {
                         to.begin({.type = "text/event-stream"});
                         const std::lock_guard lock(mutex_);
                         stream_ = std::move(to);
                         more_.notify_all();
                       }}};
    return HttpServer::start(std::move(options));
  }
  HttpResponder stream() {
    std::unique_lock lock(mutex_);
    CHECK(more_.wait_for(lock, std::chrono::seconds(20), [&] { return stream_.has_value(); }), "no request came");
    return *std::exchange(stream_, {});
  }
  std::unique_ptr<HttpClient> client() const {
    return HttpClient::open({.authorities = {.file = path("server.pem")}}).value();
  }
  std::string url(const std::string& of) const {
    return fmt::format("https://{}{}", to_string(server_->address()), of);
  }

  std::string folder_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::optional<HttpResponder> stream_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpsServing, bodies_go_both_ways_and_the_connection_goes_on) {
  server_ = started("server.pem", "server.key").value();
  const std::unique_ptr<HttpClient> asks = client();
  for (const std::size_t size : {0, 1, 16'384, 16'385, 3'000'000}) {
    const std::string body(size, 'x');
    HttpRequest request{.method = "POST", .url = url("/echo"), .body = body};
    if (size == 0) request.headers = {{"Content-Length", "0"}};
    EXPECT_EQ(asks->send(request).value().body, body);
  }
  EXPECT_EQ(server_->connections(), 1u);
  EXPECT_EQ(asks->send({.url = url("/nothing")}).value().status, 404);
}

TEST_F(HttpsServing, a_stream_arrives_and_its_reader_is_missed) {
  server_ = started("server.pem", "server.key").value();
  std::jthread reads([&] {
    std::string got;
    const auto take = [&](std::string_view piece) { return (got += piece) != "onetwo"; };
    EXPECT_TRUE(client()->send({.url = url("/stream"), .take = take}).value().ended);
  });
  HttpResponder to = stream();
  std::mutex mutex;
  std::condition_variable changed;
  bool left = false;
  to.when_gone([&] {
    const std::lock_guard lock(mutex);
    left = true;
    changed.notify_all();
  });
  EXPECT_EQ(to.write("one"), StreamWrite::taken);
  EXPECT_EQ(to.write("two"), StreamWrite::taken);
  std::unique_lock lock(mutex);
  EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(20), [&] { return left; }));
}

TEST_F(HttpsServing, who_speaks_no_tls_is_closed) {
  server_ = started("server.pem", "server.key", Seconds(2.0)).value();
  HttpWire plain(server_->address()), silent(server_->address());
  plain.say("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(plain.rest().find("HTTP/"), std::string::npos);
  EXPECT_TRUE(silent.is_closed()) << "a handshake has its time";
  const std::unique_ptr<HttpClient> stranger = HttpClient::open({.authorities = {.file = path("other.pem")}}).value();
  EXPECT_EQ(stranger->send({.url = url("/nothing")}).error().kind, ErrorKind::invalid);
  EXPECT_EQ(client()->send({.url = url("/nothing")}).value().status, 404);
}

TEST_F(HttpsServing, the_files_must_hold_a_certificate_and_its_key_alone) {
  EXPECT_EQ(started("server.pem", "").error().kind, ErrorKind::invalid);
  EXPECT_EQ(started("", "server.key").error().kind, ErrorKind::invalid);
  EXPECT_EQ(started("none.pem", "server.key").error().kind, ErrorKind::not_found);
  EXPECT_EQ(started("server.pem", "none.key").error().kind, ErrorKind::not_found);
  const auto refused = [&](const char* certificate, const char* key, const std::string& why) {
    const Result<std::unique_ptr<HttpServer>> server = started(certificate, key);
    ASSERT_FALSE(server.ok()) << why;
    EXPECT_EQ(server.error().kind, ErrorKind::invalid);
    EXPECT_NE(server.error().message.find(why), std::string::npos) << server.error().message;
  };
  refused("server.key", "server.key", "holds no certificate");
  refused("server.pem", "server.pem", "holds no private key");
  refused("server.pem", "locked.key", "without a password");
  refused("server.pem", "other.key", "is not the key of the certificate");
  ::chmod(path("server.key").c_str(), 0644);
  EXPECT_EQ(started("server.pem", "server.key").error().kind, ErrorKind::invalid) << "others may read the key";
}

}  // namespace
}  // namespace systole

// Tests HttpClient against our own server and, for certificates, against OpenSSL's.
#include "ground/net/http_client.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "ground/net/testing/http_stub.h"
#include "ground/process/capture.h"

namespace systole {
namespace {

Result<HttpReply> sent(const HttpRequest& request, HttpTrust trust = {}) {
  return HttpClient::open(std::move(trust)).value()->send(request);
}

TEST(HttpClient, method_headers_and_body_arrive_and_the_answer_comes_back) {
  StubRequest seen;
  StubServer server([&](const StubRequest& request, StubAnswer& answer) {
    seen = request;
    answer.whole(409, "there", {{"X-Why", "so"}});
  });
  const HttpReply reply =
      sent({.method = "PATCH", .url = server.url() + "/a?b=c", .headers = {{"X-A", "1"}}, .body = "text"}).value();
  EXPECT_EQ(reply.status, 409);
  EXPECT_EQ(reply.body, "there");
  EXPECT_EQ(*reply.header("x-why"), "so");
  EXPECT_EQ(reply.header("x-not"), nullptr);
  EXPECT_EQ(seen.method, "PATCH");
  EXPECT_EQ(seen.path, "/a");
  EXPECT_EQ(seen.query, "b=c");
  EXPECT_EQ(seen.header("x-a"), "1");
  EXPECT_EQ(seen.body, "text");
}

TEST(HttpClient, a_client_goes_on_after_each_request) {
  StubServer server([&](const StubRequest& request, StubAnswer& answer) { answer.whole(200, request.body); });
  const std::unique_ptr<HttpClient> client = HttpClient::open({}).value();
  EXPECT_EQ(client->send({.method = "POST", .url = server.url(), .body = "one"})->body, "one");
  EXPECT_EQ(client->send({.method = "GET", .url = server.url()})->body, "") << "nothing stays of the one before";
}

TEST(HttpClient, a_body_is_taken_as_it_comes_until_enough_came) {
  StubServer server([&](const StubRequest&, StubAnswer& answer) {
    answer.begin();
    for (int i = 0; i < 100 && answer.piece("x\n"); ++i)
      if (i == 2) answer.wait();
  });
  std::string taken;
  const HttpReply reply = sent({.url = server.url(),
                                .timeout = Seconds(0),
                                .take =
                                    [&](std::string_view piece) {
                                      taken += piece;
                                      return taken.size() < 6;
                                    }})
                              .value();
  EXPECT_TRUE(reply.ended);
  EXPECT_EQ(taken, "x\nx\nx\n");
  EXPECT_EQ(reply.body, "");
}

TEST(HttpClient, a_silent_stream_ends_when_somebody_asks) {
  StubServer server([&](const StubRequest&, StubAnswer& answer) {
    answer.begin();
    answer.wait();
  });
  int asked = 0;
  const HttpReply reply =
      sent({.url = server.url(), .timeout = Seconds(0), .cancelled = [&] { return ++asked > 2; }}).value();
  EXPECT_TRUE(reply.ended);
}

TEST(HttpClient, what_is_cut_or_silent_or_too_much_or_not_there_is_an_error) {
  const auto kind = [](StubServer::Handler handler, Seconds timeout = Seconds(5.0)) {
    StubServer server(std::move(handler));
    return sent({.url = server.url(), .timeout = timeout, .most = Bytes(4)}).error().kind;
  };
  EXPECT_EQ(kind([](const StubRequest&, StubAnswer& answer) { answer.begin(), answer.piece("ab"); }), ErrorKind::io);
  EXPECT_EQ(kind([](const StubRequest&, StubAnswer&) {}), ErrorKind::io);
  EXPECT_EQ(kind([](const StubRequest&, StubAnswer& answer) { answer.wait(); }, Seconds(0.1)), ErrorKind::io);
  EXPECT_EQ(kind([](const StubRequest&, StubAnswer& answer) { answer.whole(200, "12345"); }), ErrorKind::does_not_fit);
  const int port = free_port().value();
  EXPECT_EQ(sent({.url = fmt::format("http://127.0.0.1:{}/", port)}).error().kind, ErrorKind::io);
  EXPECT_EQ(sent({.url = "file:///etc/passwd"}).error().kind, ErrorKind::invalid);
  EXPECT_EQ(sent({.url = "http://"}).error().kind, ErrorKind::invalid);
}

TEST(HttpClient, an_error_names_no_password) {
  for (const std::string url : {"ftp://me:hunter2@127.0.0.1/", "http://me:hunter2@127.0.0.1:x/"}) {
    const Error refused = sent({.url = url}).error();
    EXPECT_EQ(refused.message.find("hunter2"), std::string::npos) << refused.message;
  }
  const Error silent = sent({.url = fmt::format("http://me:hunter2@127.0.0.1:{}/", free_port().value())}).error();
  EXPECT_TRUE(silent.message.starts_with("no answer from 127.0.0.1:")) << silent.message;
}

TEST(HttpClient, a_refusal_is_read_and_not_taken) {
  StubServer server([&](const StubRequest&, StubAnswer& answer) { answer.whole(403, "no"); });
  bool taken = false;
  const HttpReply reply = sent({.url = server.url(), .take = [&](std::string_view) { return taken = true; }}).value();
  EXPECT_FALSE(taken);
  EXPECT_EQ(reply.body, "no");
}

TEST(HttpClient, no_proxy_stands_before_this_machine) {
  StubServer server([&](const StubRequest&, StubAnswer& answer) { answer.whole(200, ""); });
  ::setenv("http_proxy", fmt::format("http://127.0.0.1:{}", free_port().value()).c_str(), 1);
  EXPECT_TRUE(sent({.url = server.url()}).ok());
  EXPECT_FALSE(sent({.url = "http://systole.invalid/"}).ok()) << "the proxy is not there";
  ::unsetenv("http_proxy");
}

// OpenSSL's own server, with certificates generated for this test.
struct Tls : testing::Test {
  void SetUp() override {
    if (!find_program("openssl").ok()) GTEST_SKIP() << "no openssl";
    std::string name = (std::filesystem::temp_directory_path() / "systole-tls-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    openssl(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 2 "
        "-subj /CN=authority");
    issue("server", "subjectAltName=IP:127.0.0.1,DNS:api.test");
    issue("client", "subjectAltName=DNS:client");
    std::ofstream(folder_ + "/version") << "a version";
  }
  void TearDown() override {
    server_.reset();
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  Captured openssl(const std::string& words) const {
    Command command{.argv = {"/bin/sh", "-c", "openssl " + words}, .cwd = folder_};
    return run_captured(std::move(command)).value();
  }
  void issue(const std::string& name, const std::string& extension) const {
    std::ofstream(folder_ + "/" + name + ".ext") << extension << "\n";
    openssl(
        fmt::format("req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {0}.key -out {0}.csr -subj "
                    "/CN={0}",
                    name));
    const Captured made = openssl(fmt::format(
        "x509 -req -in {0}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile {0}.ext -out {0}.pem", name));
    ASSERT_TRUE(made.exit.ok()) << made.err;
  }
  void serve(const std::string& more = "") {
    port_ = free_port().value();
    Command command;
    command.argv = {"/bin/sh", "-c",
                    fmt::format("exec openssl s_server -accept 127.0.0.1:{} -cert server.pem -key "
                                "server.key -WWW -quiet {}",
                                port_, more)};
    command.cwd = folder_;
    command.in = command.out = command.err = ChildStream::null();
    command.dies_with_parent = true;
    server_.emplace(Process::start(command).value());
    ASSERT_TRUE(connect_to({"127.0.0.1", port_}, deadline_after(Seconds(10.0))).ok());
  }
  Result<HttpReply> asked(HttpTrust trust) const {
    return sent({.url = fmt::format("https://127.0.0.1:{}/version", port_)}, std::move(trust));
  }
  std::string text(const std::string& name) const {
    std::ifstream file(folder_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string folder_;
  int port_ = 0;
  std::optional<Process> server_;
};

TEST_F(Tls, only_a_certificate_of_the_authority_is_believed) {
  serve();
  EXPECT_EQ(asked({.authorities = {.file = folder_ + "/ca.pem"}}).value().body, "a version");
  EXPECT_EQ(asked({.authorities = {.text = text("ca.pem")}}).value().status, 200);
  EXPECT_EQ(asked({}).error().kind, ErrorKind::invalid);
  EXPECT_EQ(asked({.authorities = {.text = text("client.pem")}}).error().kind, ErrorKind::invalid);
  EXPECT_EQ(asked({.checks_certificate = false}).value().status, 200);
}

TEST_F(Tls, the_name_that_is_checked_may_be_another_one) {
  serve();
  HttpTrust trust{.authorities = {.text = text("ca.pem")}, .server_name = "api.test"};
  EXPECT_EQ(asked(trust).value().status, 200);
  trust.server_name = "other.test";
  EXPECT_EQ(asked(trust).error().kind, ErrorKind::invalid);
}

TEST_F(Tls, we_are_known_by_our_certificate) {
  serve("-Verify 1 -verify_return_error -CAfile ca.pem");
  HttpTrust trust{.authorities = {.text = text("ca.pem")}};
  EXPECT_FALSE(asked(trust).ok());
  trust.certificate.text = text("client.pem");
  trust.key.text = text("client.key");
  EXPECT_EQ(asked(trust).value().status, 200);
  trust.certificate = {.file = folder_ + "/client.pem"};
  trust.key = {.file = folder_ + "/client.key"};
  EXPECT_EQ(asked(trust).value().status, 200);
  trust.key = {.file = folder_ + "/server.key"};
  EXPECT_EQ(asked(trust).error().kind, ErrorKind::invalid);
}

}  // namespace
}  // namespace systole

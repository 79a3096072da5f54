// Faults of the API server, one by one, with a stub server.
#include "operate/targets/kubernetes/kube_api.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "ground/base/text_file.h"
#include "ground/net/url.h"
#include "operate/targets/kubernetes/testing/kube_stub.h"

namespace systole {
namespace {

constexpr const char* kPods = "/api/v1/namespaces/team/pods";

Node pod(const std::string& name, const std::string& label = "a") {
  return parse_yaml(
             fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{ name: {}, namespace: team, labels: {{ run: {} }} "
                         "}}\n",
                         name, label),
             "test")
      .value();
}

struct Api : testing::Test {
  // Answers once with each of these, then normally.
  void answers(int status, const HttpHeaders& headers = {}) {
    stub_.on(
        [=](const StubRequest&, StubAnswer& answer) {
          KubeStub::refuse(answer, status, "Busy", "not now", headers);
          return true;
        },
        1);
  }
  KubeStub stub_;
  FakeClock clock_;
  std::unique_ptr<KubeApi> api_ = stub_.api(clock_);
};

TEST_F(Api, what_passes_is_waited_for_as_long_as_the_server_asks) {
  answers(500);
  answers(503, {{"Retry-After", "2"}});
  answers(429, {{"Retry-After", "3"}});
  EXPECT_EQ(api_->version().value(), "1.36");
  EXPECT_EQ(stub_.asked("GET /version"), 4);
  EXPECT_NEAR(clock_.now().count(), 5, 2);
}

TEST_F(Api, a_server_that_asks_for_more_than_there_is_patience_is_not_waited_for) {
  answers(429, {{"Retry-After", "3600"}});
  const Error busy = api_->get("/version").error();
  EXPECT_EQ(busy.kind, ErrorKind::busy);
  EXPECT_NE(busy.message.find("not now"), std::string::npos);
  EXPECT_LT(clock_.now().count(), 10);
}

TEST_F(Api, a_server_that_is_away_is_waited_for_and_then_said_for_how_long) {
  stub_.stop();
  const Error away = api_->get("/version").error();
  EXPECT_EQ(away.kind, ErrorKind::io);
  EXPECT_NE(away.message.find("context 'stub' does not answer, for"), std::string::npos) << away.message;
  EXPECT_GT(clock_.now().count(), 4);
  EXPECT_LE(clock_.now().count(), 10);
  stub_.start(stub_.port());
  EXPECT_TRUE(api_->get("/version").ok()) << "and when it is back it is found";
}

TEST_F(Api, a_token_that_expired_is_renewed_once) {
  std::string name = (std::filesystem::temp_directory_path() / "systole-api-XXXXXX").string();
  const std::string folder = ::mkdtemp(name.data());
  KubeAccess access = stub_.access();
  access.user.token_file = folder + "/token";
  write_text_file(access.user.token_file, "old").value();
  std::filesystem::permissions(access.user.token_file, std::filesystem::perms(0600));
  KubeApi api(std::make_shared<KubeCredentials>(access, clock_), clock_);
  const Error refused = api.get("/version").error();
  EXPECT_EQ(refused.kind, ErrorKind::invalid);
  EXPECT_NE(refused.hint.find("credentials"), std::string::npos);
  EXPECT_EQ(stub_.asked("GET /version"), 2);
  stub_.on(
      [&](const StubRequest&, StubAnswer& answer) {
        write_text_file(access.user.token_file, "known").value();
        KubeStub::refuse(answer, 401, "Unauthorized", "Unauthorized");
        return true;
      },
      1);
  EXPECT_TRUE(api.get("/version").ok());
  std::filesystem::remove_all(folder);
}

TEST_F(Api, lists_come_in_pages_and_begin_anew_when_the_server_forgets_them) {
  for (int i = 0; i < 1203; ++i) stub_.put(fmt::format("{}/p{:04}", kPods, i), pod(fmt::format("p{:04}", i)));
  stub_.put(std::string(kPods) + "/other", pod("other", "b"));
  EXPECT_EQ(api_->list(kPods, "run=a").value().items.size(), 1203u);
  EXPECT_EQ(stub_.asked(std::string("GET ") + kPods), 3);
  stub_.on(
      [](const StubRequest& request, StubAnswer& answer) {
        if (request.query.find("continue") == std::string::npos) return false;
        KubeStub::refuse(answer, 410, "Expired", "too old");
        return true;
      },
      1);
  EXPECT_EQ(api_->list(kPods, "run=a").value().items.size(), 1203u);
  EXPECT_EQ(text_at(api_->list(kPods, "run=b").value().items.at(0), {"kind"}), "Pod");
}

TEST_F(Api, objects_are_made_changed_and_taken_away) {
  EXPECT_EQ(text_at(api_->apply(pod("a"), {.dry_run = true}).value(), {"metadata", "name"}), "a");
  EXPECT_TRUE(stub_.paths().empty());
  api_->create(pod("a")).value();
  EXPECT_EQ(api_->create(pod("a")).error().kind, ErrorKind::exists);
  api_->patch(std::string(kPods) + "/a", Node::map({{"spec", Node::map({{"x", 1}})}})).value();
  EXPECT_EQ(number_at(*stub_.find(std::string(kPods) + "/a"), {"spec", "x"}), 1);
  EXPECT_TRUE(api_->remove(std::string(kPods) + "/a").ok());
  EXPECT_TRUE(api_->remove(std::string(kPods) + "/a").ok());
  EXPECT_FALSE(api_->find(std::string(kPods) + "/a").value().has_value());
  EXPECT_EQ(api_->get(std::string(kPods) + "/a").error().kind, ErrorKind::not_found);
}

TEST_F(Api, a_kind_that_the_cluster_has_not_is_said_with_what_installs_it) {
  const Error no_jobset = api_->path_of("jobset.x-k8s.io/v1alpha2", "JobSet", "team").error();
  EXPECT_EQ(no_jobset.kind, ErrorKind::not_found);
  EXPECT_NE(no_jobset.hint.find("kubectl apply --server-side -f https://"), std::string::npos) << no_jobset.hint;
  EXPECT_EQ(api_->path_of("batch/v1", "Job", "team", "x").value(), "/apis/batch/v1/namespaces/team/jobs/x");
  EXPECT_FALSE(api_->path_of("batch/v1", "CronJob", "team").ok());
  EXPECT_TRUE(api_->serves("batch/v1").value());
  EXPECT_FALSE(api_->serves("jobset.x-k8s.io/v1alpha2").value());
  EXPECT_EQ(stub_.asked("GET /apis"), 1);
}

TEST_F(Api, refusals_are_in_the_servers_words) {
  const auto refusal = [](int status, const char* reason, const char* message) {
    return refusal_of({.status = status, .body = {}, .reason = reason, .message = message}, "Job 'a'");
  };
  EXPECT_EQ(refusal(409, "Conflict", "x").kind, ErrorKind::busy);
  EXPECT_EQ(refusal(422, "Invalid", "spec.x: too many").message, "Job 'a': the cluster refuses: spec.x: too many");
  EXPECT_NE(refusal(403, "Forbidden", "namespace team because it is being terminated").hint.find("taken away"),
            std::string::npos);
  EXPECT_NE(refusal(403, "Forbidden", "exceeded quota: q").hint.find("resourcequota"), std::string::npos);
}

TEST_F(Api, versions_that_it_was_not_made_for_are_warned_of) {
  EXPECT_EQ(version_warning("1.29"), "");
  EXPECT_EQ(version_warning("1.36"), "");
  EXPECT_NE(version_warning("1.28"), "");
  EXPECT_NE(version_warning("1.37"), "");
}

TEST(Url, words_are_escaped) { EXPECT_EQ(url_encoded("a=b,c d/é"), "a%3Db%2Cc%20d%2F%C3%A9"); }

}  // namespace
}  // namespace systole

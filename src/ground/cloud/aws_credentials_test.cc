#include "ground/cloud/aws_credentials.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <map>

#include "ground/base/testing/files.h"
#include "ground/net/testing/http_stub.h"

namespace systole {
namespace {

constexpr const char* kSecret = "SECRET-NOT-SHOWN";

// An environment and a home of its own, and a server that is STS, a container's agent and a machine's metadata server.
class AwsCredentials : public testing::Test {
 protected:
  AwsCredentials() {
    set("HOME", folder_.path());
    set("AWS_EC2_METADATA_DISABLED", "true");
  }
  void set(const std::string& name, const std::string& value) { variables_[name] = value; }
  std::string file(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string path = folder_.path() + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
    CHECK(::chmod(path.c_str(), mode) == 0, "chmod");
    return path;
  }
  AwsPlace place() {
    return {.variables = [this](const char* name) -> std::optional<std::string> {
              const auto found = variables_.find(name);
              return found == variables_.end() || found->second.empty() ? std::nullopt : std::optional(found->second);
            },
            .retries = {.total = Seconds(0.0)},
            .clock = clock_};
  }
  Result<AwsKeys> found() { return aws_keys(place())->keys(); }
  Error wrong() {
    const Result<AwsKeys> keys = found();
    EXPECT_FALSE(keys.ok());
    Error error = keys.ok() ? Error{} : keys.error();
    EXPECT_EQ(to_string(error).find(kSecret), std::string::npos) << to_string(error);
    return error;
  }

  TemporaryFolder folder_;
  std::map<std::string, std::string> variables_;
  std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();  // 2000-01-01T00:00:00Z
};

// What the server is asked, and what it says.
struct Server {
  std::vector<StubRequest> asked;
  std::map<std::string, std::pair<int, std::string>> says;  // by "METHOD path"
  StubServer stub{[this](const StubRequest& request, StubAnswer& answer) {
    asked.push_back(request);
    const auto found = says.find(request.method + " " + request.path);
    if (found == says.end()) return answer.whole(404, "");
    answer.whole(found->second.first, found->second.second);
  }};
};

std::string sts_answer(const char* action, const char* session) {
  return fmt::format(
      "<{}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{}Result><Credentials>"
      "<AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>{}</SecretAccessKey>"
      "<SessionToken>{}</SessionToken><Expiration>2000-01-01T01:00:00Z</Expiration></Credentials>"
      "</{}Result></{}Response>",
      action, action, kSecret, session, action, action);
}

std::string json_answer(const char* id, const char* ends = "2000-01-01T06:00:00Z") {
  return fmt::format(
      "{{\"Code\":\"Success\",\"AccessKeyId\":\"{}\",\"SecretAccessKey\":\"{}\",\"Token\":\"t\",\"Expiration\":\"{}\"}"
      "}",
      id, kSecret, ends);
}

TEST_F(AwsCredentials, of_the_environment_count_first) {
  file(".aws/credentials", "[default]\naws_access_key_id = OTHER\naws_secret_access_key = x\n");
  set("AWS_ACCESS_KEY_ID", "AKID");
  EXPECT_EQ(wrong().kind, ErrorKind::invalid);
  set("AWS_SECRET_ACCESS_KEY", kSecret);
  set("AWS_SESSION_TOKEN", "session");
  EXPECT_EQ(found().value(), (AwsKeys{"AKID", kSecret, "session"}));
  set("AWS_NO_SIGN_REQUEST", "true");
  EXPECT_TRUE(found()->anonymous());
}

TEST_F(AwsCredentials, are_found_in_profiles) {
  file(".aws/credentials",
       fmt::format("# of mine\n[default]\naws_access_key_id=DEFAULT\naws_secret_access_key = {}\n"
                   "[work]\naws_access_key_id = WORK\naws_secret_access_key = {}\naws_session_token = s=1\n",
                   kSecret, kSecret));
  file(".aws/config",
       "[default]\nregion = eu-west-1\ns3 =\n  addressing_style = path\n[profile work]\nregion = us-east-2\n"
       "endpoint_url = http://localhost:9000/\n[sso-session x]\nregion = no\n[profile far]\nsso_session = x\n",
       0644);
  EXPECT_EQ(found()->id, "DEFAULT");
  EXPECT_EQ(aws_settings(place().variables)->region, "eu-west-1");
  set("AWS_PROFILE", "work");
  EXPECT_EQ(found().value(), (AwsKeys{"WORK", kSecret, "s=1"}));
  EXPECT_EQ(aws_settings(place().variables)->region, "us-east-2");
  EXPECT_EQ(aws_settings(place().variables)->s3_endpoint, "http://localhost:9000");
  set("AWS_REGION", "ap-south-1");
  set("AWS_ENDPOINT_URL_S3", "localhost:9000");
  EXPECT_FALSE(aws_settings(place().variables).ok());
  set("AWS_ENDPOINT_URL_S3", "https://minio");
  EXPECT_EQ(aws_settings(place().variables)->region, "ap-south-1");
  set("AWS_PROFILE", "far");
  EXPECT_EQ(wrong().kind, ErrorKind::unsupported);
  set("AWS_PROFILE", "none");
  EXPECT_NE(wrong().message.find("no such profile"), std::string::npos);
}

TEST_F(AwsCredentials, of_a_file_that_others_read_are_refused) {
  file(".aws/credentials", fmt::format("[default]\naws_access_key_id = A\naws_secret_access_key = {}\n", kSecret),
       0644);
  EXPECT_EQ(wrong().kind, ErrorKind::invalid);
  file(".aws/credentials", fmt::format("[default]\naws_access_key_id = A\n{}\n", kSecret));
  EXPECT_EQ(wrong().where.line, 3);
  EXPECT_EQ(wrong().kind, ErrorKind::invalid);
}

TEST_F(AwsCredentials, of_a_web_identity_come_from_sts_and_are_renewed_early) {
  Server server;
  server.says["POST /"] = {200, sts_answer("AssumeRoleWithWebIdentity", "one")};
  set("AWS_ENDPOINT_URL_STS", server.stub.url());
  set("AWS_ROLE_ARN", "arn:aws:iam::1:role/r");
  set("AWS_WEB_IDENTITY_TOKEN_FILE", file("token", "ey.J.wt\n"));
  const auto source = aws_keys(place());
  EXPECT_EQ(source->keys().value(), (AwsKeys{"ASIAROLE", kSecret, "one"}));
  clock_->advance(Seconds(3200.0));
  EXPECT_EQ(source->keys()->session, "one");
  ASSERT_EQ(server.asked.size(), 1U);
  EXPECT_EQ(server.asked[0].body,
            "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&"
            "RoleSessionName=systole&WebIdentityToken=ey.J.wt");
  server.says["POST /"] = {500, ""};  // while the old ones last they are used
  clock_->advance(Seconds(150.0));
  EXPECT_EQ(source->keys()->session, "one");
  clock_->advance(Seconds(300.0));
  EXPECT_FALSE(source->keys().ok());
  server.says["POST /"] = {403, "<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>"};
  clock_->advance(Seconds(60.0));
  const Error refused = wrong();
  EXPECT_NE(refused.message.find("AccessDenied"), std::string::npos) << refused.message;
}

TEST_F(AwsCredentials, of_a_role_are_asked_for_with_the_source_profiles_keys) {
  Server server;
  server.says["POST /"] = {200, sts_answer("AssumeRole", "role")};
  file(".aws/credentials", fmt::format("[base]\naws_access_key_id = BASE\naws_secret_access_key = {}\n", kSecret));
  file(".aws/config",
       fmt::format("[profile r]\nrole_arn = arn:r\nsource_profile = base\nexternal_id = e/1\nendpoint_url = {}\n"
                   "[profile loop]\nrole_arn = a\nsource_profile = pool\n"
                   "[profile pool]\nrole_arn = a\nsource_profile = loop\n",
                   server.stub.url()));
  set("AWS_PROFILE", "r");
  EXPECT_EQ(found()->session, "role");
  EXPECT_EQ(server.asked[0].body,
            "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Ar&RoleSessionName=systole&ExternalId=e%2F1");
  EXPECT_NE(server.asked[0].header("authorization").find("Credential=BASE/20000101/us-east-1/sts/"), std::string::npos);
  set("AWS_PROFILE", "loop");
  EXPECT_EQ(wrong().kind, ErrorKind::invalid);
}

TEST_F(AwsCredentials, of_a_container_come_from_its_agent) {
  Server server;
  server.says["GET /v2/keys"] = {200, json_answer("ASIATASK")};
  set("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.stub.url() + "/v2/keys");
  set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", file("agent", "bearer-of-it\n"));
  EXPECT_EQ(found()->id, "ASIATASK");
  EXPECT_EQ(server.asked[0].header("authorization"), "bearer-of-it");
  server.says["GET /v2/keys"] = {200, json_answer("ASIATASK", "1999-12-31T00:00:00Z")};
  EXPECT_EQ(wrong().kind, ErrorKind::io);
  server.says["GET /v2/keys"] = {200, fmt::format("{{\"SecretAccessKey\": \"{}", kSecret)};
  EXPECT_EQ(wrong().kind, ErrorKind::corrupt);
  set("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://example.com/v2/keys");
  EXPECT_EQ(wrong().kind, ErrorKind::invalid);
}

TEST_F(AwsCredentials, of_a_machine_come_from_its_metadata_server) {
  Server server;
  server.says["PUT /latest/api/token"] = {200, "metadata-token"};
  server.says["GET /latest/meta-data/iam/security-credentials/"] = {200, "the-role\n"};
  server.says["GET /latest/meta-data/iam/security-credentials/the-role"] = {200, json_answer("ASIAMACHINE")};
  set("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.stub.url());
  EXPECT_EQ(wrong().hint.substr(0, 13), "aws configure");
  set("AWS_EC2_METADATA_DISABLED", "");
  EXPECT_EQ(found()->id, "ASIAMACHINE");
  ASSERT_EQ(server.asked.size(), 3U);
  EXPECT_EQ(server.asked[0].header("x-aws-ec2-metadata-token-ttl-seconds"), "21600");
  EXPECT_EQ(server.asked[2].header("x-aws-ec2-metadata-token"), "metadata-token");
  server.says.erase("GET /latest/meta-data/iam/security-credentials/");
  EXPECT_EQ(wrong().kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace systole

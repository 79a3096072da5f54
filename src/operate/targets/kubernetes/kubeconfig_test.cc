#include "operate/targets/kubernetes/kubeconfig.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>

#include "ground/base/text_file.h"
#include "operate/targets/kubernetes/kube_credentials.h"

namespace systole {
namespace {

constexpr const char* kConfig = R"(apiVersion: v1
kind: Config
current-context: near
contexts:
  - { name: near, context: { cluster: here, user: me, namespace: team } }
  - { name: far, context: { cluster: there, user: plugin } }
  - { name: bare, context: { cluster: here } }
clusters:
  - { name: here, cluster: { server: "https://127.0.0.1:6443/", certificate-authority-data: Q0EK } }
  - { name: there, cluster: { server: "https://far.test", certificate-authority: ca.pem, tls-server-name: api } }
users:
  - { name: me, user: { client-certificate-data: Q0VSVAo=, client-key-data: S0VZCg== } }
  - name: plugin
    user:
      exec:
        apiVersion: client.authentication.k8s.io/v1
        command: ./plugin
        args: [a b, c]
        env: [{ name: X, value: "1" }]
        installHint: get the plugin
)";

struct Kubeconfig : testing::Test {
  Kubeconfig() {
    std::string name = (std::filesystem::temp_directory_path() / "systole-kube-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~Kubeconfig() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) const {
    write_text_file(folder_ + "/" + name, text).value();
    std::filesystem::permissions(folder_ + "/" + name, std::filesystem::perms(0600));
    return folder_ + "/" + name;
  }
  void plugin(const std::string& script) const {
    const std::string path = write("plugin", "#!/bin/sh\necho run >>\"$(dirname \"$0\")/runs\"\n" + script);
    std::filesystem::permissions(path, std::filesystem::perms(0755));
  }
  int runs() const {
    const Result<std::string> text = read_text_file(folder_ + "/runs");
    return text.ok() ? static_cast<int>(std::ranges::count(*text, '\n')) : 0;
  }
  Result<KubeAccess> access(const std::string& text, const std::string& context = "") const {
    return kube_access({.context = context, .files = {write("config", text)}});
  }
  std::string folder_;
  FakeClock clock_;
};

TEST_F(Kubeconfig, a_context_is_its_cluster_its_user_and_its_namespace) {
  const KubeAccess near = access(kConfig).value();
  EXPECT_EQ(near.context, "near");
  EXPECT_EQ(near.server, "https://127.0.0.1:6443");
  EXPECT_EQ(near.name_space, "team");
  EXPECT_EQ(near.trust.authorities.text, "CA\n");
  EXPECT_EQ(near.user.certificate.text, "CERT\n");
  EXPECT_EQ(near.user.key.text, "KEY\n");
  EXPECT_TRUE(near.trust.checks_certificate);
  const KubeAccess far = access(kConfig, "far").value();
  EXPECT_EQ(far.name_space, "default");
  EXPECT_EQ(far.trust.authorities.file, folder_ + "/ca.pem");
  EXPECT_EQ(far.trust.server_name, "api");
  EXPECT_EQ(far.user.exec->argv, (std::vector<std::string>{folder_ + "/plugin", "a b", "c"}));
}

TEST_F(Kubeconfig, of_several_files_the_first_that_names_something_counts) {
  const std::string first = write("first", "current-context: far\nusers:\n  - { name: plugin, user: { token: t } }\n");
  const KubeAccess far =
      kube_access({.context = "", .files = {first, folder_ + "/absent", write("config", kConfig)}}).value();
  EXPECT_EQ(far.server, "https://far.test");
  EXPECT_EQ(far.user.token, "t");
}

TEST_F(Kubeconfig, what_is_missing_is_said_with_what_is_near) {
  EXPECT_EQ(access(kConfig, "naer").error().hint, "did you mean 'near'?");
  EXPECT_EQ(access(kConfig, "naer").error().kind, ErrorKind::not_found);
  const Error bare = access(kConfig, "bare").error();
  EXPECT_NE(bare.message.find("no credentials"), std::string::npos);
  EXPECT_NE(bare.hint.find("set-credentials"), std::string::npos);
  EXPECT_EQ(bare.where.line, 7);
  EXPECT_EQ(kube_access({.files = {folder_ + "/absent"}}).error().kind, ErrorKind::not_found);
}

TEST_F(Kubeconfig, what_is_none_is_refused_at_its_place) {
  const Error twice = access("contexts: []\nusers: []\ncontexts: []\n").error();
  EXPECT_EQ(twice.where.line, 3);
  EXPECT_NE(twice.message.find("contexts"), std::string::npos);
  EXPECT_EQ(access("kind: Pod\n").error().kind, ErrorKind::invalid);
  EXPECT_EQ(access("[1]\n").error().kind, ErrorKind::invalid);
  std::string text = kConfig;
  text.replace(text.find("Q0VSVAo="), 8, "Q0VS!!o=");
  EXPECT_EQ(access(text).error().where.line, 12);
  text = kConfig;
  text.replace(text.find(", client-key-data: S0VZCg=="), 27, "");
  EXPECT_EQ(access(text).error().kind, ErrorKind::invalid);
}

TEST_F(Kubeconfig, credentials_that_others_may_read_are_refused) {
  const std::string path = write("config", kConfig);
  std::filesystem::permissions(path, std::filesystem::perms(0640));
  const Error open = kube_access({.files = {path}}).error();
  EXPECT_EQ(open.hint, "chmod 600 " + path);
  EXPECT_TRUE(kube_access({.context = "far", .files = {path}}).error().message.find("read by others") !=
              std::string::npos)
      << "what its plugin's environment holds";
  std::string text = kConfig;
  text.replace(text.find("client-key-data: S0VZCg=="), 25, "client-key: key.pem");
  write("key.pem", "KEY\n");
  EXPECT_EQ(access(text).value().user.key.text, "KEY\n");
  std::filesystem::permissions(folder_ + "/key.pem", std::filesystem::perms(0604));
  EXPECT_EQ(access(text).error().hint, "chmod 600 " + folder_ + "/key.pem");
  text = kConfig;
  text.replace(text.find("client-certificate-data: Q0VSVAo=, client-key-data: S0VZCg=="), 60, "tokenFile: token");
  write("token", "secret\n");
  std::filesystem::permissions(folder_ + "/token", std::filesystem::perms(0644));
  KubeCredentials credentials(access(text).value(), clock_);
  EXPECT_EQ(credentials.shown().error().hint, "chmod 600 " + folder_ + "/token");
}

TEST_F(Kubeconfig, a_pod_has_its_service_account) {
  write("token", "secret\n");
  std::filesystem::permissions(folder_ + "/token", std::filesystem::perms(0644));  // the mode of a mounted token
  write("namespace", "work\n");
  const KubeAccess pod =
      kube_access({.context = "", .files = {}, .pod_folder = folder_, .pod_host = "fd00::1", .pod_port = "443"})
          .value();
  EXPECT_EQ(pod.server, "https://[fd00::1]:443");
  EXPECT_EQ(pod.name_space, "work");
  KubeCredentials credentials(pod, clock_);
  EXPECT_EQ(credentials.shown()->headers[0].second, "Bearer secret");
  write("token", "another\n");
  EXPECT_EQ(credentials.shown()->headers[0].second, "Bearer another") << "it is read anew";
}

TEST_F(Kubeconfig, a_plugin_runs_once_until_its_credentials_end_or_are_refused) {
  plugin(R"(echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t'$X$#'",
"expirationTimestamp":"2000-01-01T01:00:00Z"}}')"
         "\n");
  KubeCredentials credentials(access(kConfig, "far").value(), clock_);
  const KubeCredentials::Shown shown = credentials.shown().value();
  EXPECT_EQ(shown.headers[0].second, "Bearer t12") << "X of its env, and two arguments";
  credentials.shown().value();
  EXPECT_EQ(runs(), 1);
  clock_.advance(Seconds(3580));
  credentials.shown().value();
  EXPECT_EQ(runs(), 2) << "it has almost expired";
  const KubeCredentials::Shown refused = credentials.shown().value();
  EXPECT_TRUE(credentials.renew(refused));
  EXPECT_TRUE(credentials.renew(refused)) << "twice at once is once";
  EXPECT_NE(credentials.shown()->number, refused.number);
  EXPECT_EQ(runs(), 4);
}

TEST_F(Kubeconfig, what_a_plugin_prints_is_never_repeated) {
  KubeCredentials credentials(access(kConfig, "far").value(), clock_);
  Error wrong = credentials.shown().error();
  EXPECT_EQ(wrong.hint, "get the plugin");
  for (const char* script : {"echo PLANTED; exit 0\n", "echo '{\"status\":{\"tokn\":\"PLANTED\"}}'\n",
                             "echo '{\"status\":{\"token\":\"PLANTED \\n X: y\"}}'\n", "echo PLANTED; exit 1\n"}) {
    plugin(script);
    wrong = credentials.shown().error();
    EXPECT_EQ(wrong.kind, ErrorKind::invalid) << script;
    EXPECT_EQ(to_string(wrong).find("PLANTED"), std::string::npos) << to_string(wrong);
  }
}

TEST_F(Kubeconfig, without_anything_to_renew_a_refusal_is_one) {
  KubeAccess plain{.user = {.token = "t"}};
  KubeCredentials credentials(plain, clock_);
  EXPECT_FALSE(credentials.renew(credentials.shown().value()));
}

}  // namespace
}  // namespace systole

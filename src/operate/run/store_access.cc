#include "operate/run/store_access.h"

#include "ground/cloud/aws_credentials.h"

namespace systole {
namespace {

// "http://host:port" of "host:port/"; also without the path that Google's clients allow.
std::string endpoint_of(std::string text) {
  if (text.find("://") == text.npos) text = "http://" + text;
  for (const std::string_view end : {"/", "/storage/v1", "/"})
    if (text.ends_with(end)) text.resize(text.size() - end.size());
  return text;
}

Result<GcsAccess> gcs_access(const Variables& variables, const HttpTrust& trust) {
  GcsAccess access;
  access.user_project = quota_project(variables);
  access.kms_key = variables("SYSTOLE_GCS_KMS_KEY").value_or("");
  if (const auto host = variables("STORAGE_EMULATOR_HOST")) {
    access.endpoint = endpoint_of(*host);
    return access;
  }
  if (const auto endpoint = variables("CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE"))
    access.endpoint = endpoint_of(*endpoint);
  TRY(check_bearer_url(access.endpoint));
  access.bearer = google_bearer({.variables = variables, .trust = trust});
  return access;
}

Result<S3Access> s3_access(const Variables& variables, HttpTrust trust) {
  const AwsSettings settings = TRY(aws_settings(variables));
  S3Access access;
  access.region = settings.region;
  access.endpoint = settings.s3_endpoint;
  access.authorities = settings.ca_bundle;
  access.encryption = variables("AWS_SERVER_SIDE_ENCRYPTION").value_or("");
  access.kms_key = variables("AWS_SSE_KMS_KEY_ID").value_or("");
  if (!access.kms_key.empty() && access.encryption.empty()) access.encryption = "aws:kms";
  access.requester_pays = variables("AWS_REQUEST_PAYER") == "requester";
  if (!settings.ca_bundle.empty()) trust.authorities = {"", settings.ca_bundle};
  access.keys = aws_keys({.variables = variables, .trust = std::move(trust)});
  return access;
}

}  // namespace

StoreAccess store_access(Variables variables) {
  StoreAccess access;
  access.trust = trust_of_environment();
  access.gcs = [variables, trust = access.trust] { return gcs_access(variables, trust); };
  access.s3 = [variables = std::move(variables), trust = access.trust] { return s3_access(variables, trust); };
  return access;
}

}  // namespace systole

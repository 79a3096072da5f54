#include "ground/net/aws_signature.h"

#include <gtest/gtest.h>

#include "ground/base/iso_time.h"
#include "ground/net/url.h"

namespace systole {
namespace {

// Keys, requests and signatures that AWS has published: its test suite (aws-sig-v4-test-suite) and the examples of S3
// ("Signature Calculations for the Authorization Header").
const AwsKeys kSuite{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""};
const AwsKeys kS3{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
constexpr const char* kNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string signature_of(HttpRequest request, const AwsKeys& keys, const AwsScope& scope, std::string_view payload,
                         std::string_view time) {
  sign_aws(request, keys, scope, payload, from_iso8601(time).value());
  const std::string& header = *find_header(request.headers, "Authorization");
  return header.substr(header.rfind('=') + 1);
}

std::string of_suite(std::string method, std::string url, AwsKeys keys = kSuite) {
  return signature_of({.method = std::move(method), .url = std::move(url)}, keys, {"us-east-1", "service"}, kNothing,
                      "2015-08-30T12:36:00Z");
}

std::string of_s3(HttpRequest request, const std::string& body = "") {
  const std::string payload = payload_hash(body);
  request.url = "https://examplebucket.s3.amazonaws.com" + request.url;
  request.headers.emplace_back("x-amz-content-sha256", payload);
  return signature_of(std::move(request), kS3, {"us-east-1", "s3"}, payload, "2013-05-24T00:00:00Z");
}

TEST(AwsSignature, is_the_published_one_of_the_test_suite) {
  EXPECT_EQ(of_suite("GET", "https://example.amazonaws.com/"),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
  EXPECT_EQ(of_suite("GET", "https://example.amazonaws.com"),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
  EXPECT_EQ(of_suite("POST", "https://example.amazonaws.com:443/"),
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
  EXPECT_EQ(of_suite("GET", "https://example.amazonaws.com/?Param2=value2&Param1=value1"),
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
}

TEST(AwsSignature, is_the_published_one_of_temporary_keys) {
  AwsKeys temporary = kSuite;
  temporary.session =
      "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwt"
      "hAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVX"
      "AkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA="
      "=";
  EXPECT_EQ(of_suite("POST", "https://example.amazonaws.com/", temporary),
            "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead");
}

TEST(AwsSignature, is_the_published_one_of_s3) {
  EXPECT_EQ(of_s3({.url = "/test.txt", .headers = {{"Range", "bytes=0-9"}}}),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  EXPECT_EQ(
      of_s3({.method = "PUT",
             .url = "/" + url_encoded("test$file.text", true),
             .headers = {{"Date", "Fri,  24 May 2013 00:00:00 GMT "}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}}},
            "Welcome to Amazon S3."),
      "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
  EXPECT_EQ(of_s3({.url = "/?lifecycle"}), "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  EXPECT_EQ(of_s3({.url = "/?prefix=J&max-keys=2"}),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(AwsSignature, encodes_all_that_is_not_plain) {
  EXPECT_EQ(url_encoded("a b/ü+~.-_*'"), "a%20b%2F%C3%BC%2B~.-_%2A%27");
  EXPECT_EQ(url_encoded("a b/c", true), "a%20b/c");
}

}  // namespace
}  // namespace systole

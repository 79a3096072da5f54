#pragma once
// How this process reaches the stores of clouds: with the credentials, endpoints and certificates of its environment.
// Only here do stores and ground/cloud meet.
//
//   STORAGE_EMULATOR_HOST                      another server for gs://, asked without credentials
//   CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE    another endpoint for gs://, as a private one
//   GOOGLE_CLOUD_QUOTA_PROJECT                 the project that pays for requests (requester pays)
//   SYSTOLE_GCS_KMS_KEY                        the Cloud KMS key of objects that are written (CMEK)
//   AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL      another server for s3://, with buckets as folders
//   AWS_REGION, AWS_DEFAULT_REGION             of the bucket
//   AWS_REQUEST_PAYER=requester                who asks pays for the requests
//   AWS_SERVER_SIDE_ENCRYPTION                 AES256 or aws:kms, with AWS_SSE_KMS_KEY_ID: of objects that are written
//   AWS_CA_BUNDLE                              the authorities of that endpoint's certificate
//   SSL_CERT_FILE, HTTPS_PROXY, NO_PROXY       as other clients of HTTPS read them
// and those of ground/cloud/google_credentials.h and aws_credentials.h.

#include "ground/cloud/google_credentials.h"
#include "ground/store/store_access.h"

namespace systole {

// Reads nothing before a store is opened.
StoreAccess store_access(Variables variables = variables_of_process());

}  // namespace systole

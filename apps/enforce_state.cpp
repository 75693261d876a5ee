// SPDX-License-Identifier: Apache-2.0
#include "apps/enforce_state.h"

#include "absl/strings/str_cat.h"
#include "apps/operator_client.h"
#include "store/store.h"
#include "tenancy/store_journal.h"

namespace switchyard::apps {
namespace {

Result<EnforceState> ReadStateFile(const agent::Config& config) {
  const Result<store::Store::Opened> opened =
      store::Store::Open(config.paths.state, store::Store::Mode::kReadOnly);
  if (absl::IsNotFound(opened.status())) {
    return absl::NotFoundError(absl::StrCat("no agent listens on ", config.paths.socket,
                                            " and there is no state file in ", config.paths.state,
                                            ": start one with `switchyard agent`"));
  }
  RETURN_IF_ERROR(opened.status());
  tenancy::StoreJournal journal(*opened->store);
  ASSIGN_OR_RETURN(tenancy::Journal::Content content, journal.Load());
  EnforceState state;
  state.lost = std::move(content.lost);
  for (tenancy::TenancyRecord& record : content.records) {
    tenancy::TenancyView view;
    view.partition = record.partition;
    view.record = std::move(record);
    state.view.tenancies.push_back(std::move(view));
  }
  return state;
}

}  // namespace

Result<EnforceState> AskEnforceState(const agent::Config& config) {
  const OperatorClient client{config.paths.socket};
  ASSIGN_OR_RETURN(const std::string answer, client.Get("/v1/tenancies"));
  return ParseEnforceState(answer);
}

Result<EnforceState> ReadEnforceState(const agent::Config& config) {
  Result<EnforceState> asked = AskEnforceState(config);
  return absl::IsNotFound(asked.status()) ? ReadStateFile(config) : asked;
}

Result<std::string> AskForChange(const agent::Config& config, const std::string& target) {
  // Behind one request that runs already, each with its wait, a read of Fabric Manager that must
  // end first, and a change.
  OperatorClient client{config.paths.socket};
  client.timeout = absl::Seconds(5) + 2 * (config.allocate_wait + 2 * config.fabric.timeout);
  const Result<std::string> answer = client.Post(target);
  if (!absl::IsDeadlineExceeded(answer.status())) return answer;
  return absl::DeadlineExceededError(
      absl::StrCat(answer.status().message(),
                   "; it may still be done: `switchyard tenancies` shows what came of it"));
}

std::string OwnerText(const tenancy::TenancyRecord& record) {
  if (!record.owner) return "not known yet";
  return absl::StrCat(record.owner->kind, " ", record.owner->key);
}

std::string TenancyText(const tenancy::TenancyRecord& record) {
  return absl::StrCat("tenancy ", record.id,
                      record.owner ? absl::StrCat(" of ", OwnerText(record)) : std::string());
}

}  // namespace switchyard::apps

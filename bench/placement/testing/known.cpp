// SPDX-License-Identifier: Apache-2.0
#include "bench/placement/testing/known.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace switchyard::bench {
namespace {

using Matrix = std::vector<std::vector<double>>;

// Which partitions are held, as sets of positions: every disjoint choice of them.
std::vector<std::vector<int>> Holdings(const Yard& yard) {
  std::vector<std::vector<int>> all;
  const size_t n = yard.table.partitions.size();
  for (unsigned choice = 0; choice < 1u << n; ++choice) {
    std::vector<int> held;
    fabric::ModuleSet taken;
    bool disjoint = true;
    for (size_t p = 0; p < n; ++p) {
      if ((choice >> p & 1u) == 0) continue;
      const fabric::ModuleSet modules = yard.table.partitions[p].modules;
      disjoint = disjoint && !modules.Overlaps(taken);
      taken = taken | modules;
      held.push_back(static_cast<int>(p));
    }
    if (disjoint) all.push_back(held);
  }
  return all;
}

// Solves m x = b by elimination with pivots.
std::vector<double> Solve(Matrix m, std::vector<double> b) {
  const size_t n = b.size();
  for (size_t c = 0; c < n; ++c) {
    size_t pivot = c;
    for (size_t r = c; r < n; ++r) {
      if (std::abs(m[r][c]) > std::abs(m[pivot][c])) pivot = r;
    }
    std::swap(m[c], m[pivot]);
    std::swap(b[c], b[pivot]);
    for (size_t r = 0; r < n; ++r) {
      if (r == c) continue;
      const double f = m[r][c] / m[c][c];
      for (size_t k = c; k < n; ++k) m[r][k] -= f * m[c][k];
      b[r] -= f * b[c];
    }
  }
  for (size_t c = 0; c < n; ++c) b[c] /= m[c][c];
  return b;
}

struct Decision {
  size_t state;
  size_t kind;                  // position in the mix
  std::vector<size_t> options;  // states
};

// Time shares of the policy that takes option chosen[i] of decision i, then what it accepts.
double AcceptanceOf(const Demand& demand, Measure measure, const Matrix& departures,
                    const std::vector<Decision>& decisions, const std::vector<size_t>& chosen) {
  Matrix rates = departures;  // from row to column
  for (size_t i = 0; i < decisions.size(); ++i) {
    const Decision& d = decisions[i];
    rates[d.state][d.options[chosen[i]]] += demand.arrivals * demand.mix[d.kind].share;
  }
  const size_t n = rates.size();
  Matrix balance(n, std::vector<double>(n, 0));
  for (size_t from = 0; from < n; ++from) {
    for (size_t to = 0; to < n; ++to) {
      balance[to][from] += rates[from][to];
      balance[from][from] -= rates[from][to];
    }
  }
  balance[n - 1].assign(n, 1);  // the shares sum to 1
  std::vector<double> right(n, 0);
  right[n - 1] = 1;
  const std::vector<double> time = Solve(balance, right);
  double accepted = 0;
  double asked = 0;
  for (const Share& s : demand.mix) asked += s.share * WeightOf(measure, s.size);
  for (const Decision& d : decisions) {
    const Share& s = demand.mix[d.kind];
    accepted += time[d.state] * s.share * WeightOf(measure, s.size);
  }
  return accepted / asked;
}

}  // namespace

Yard MakeYard(const std::vector<fabric::ModuleSet>& partitions) {
  Yard yard;
  yard.name = "test";
  for (const fabric::ModuleSet modules : partitions) {
    yard.table.modules = yard.table.modules | modules;
    yard.table.partitions.push_back({.id = static_cast<int>(yard.table.partitions.size()),
                                     .active = false,
                                     .modules = modules});
  }
  yard.address_order = yard.table.modules.ToVector();
  return yard;
}

double ErlangB(int servers, double load) {
  double blocked = 1;
  for (int n = 1; n <= servers; ++n) blocked = load * blocked / (n + load * blocked);
  return blocked;
}

std::vector<double> EveryPolicy(const Yard& yard, const Demand& demand, Measure measure) {
  const std::vector<std::vector<int>> states = Holdings(yard);
  std::map<std::vector<int>, size_t> index;
  for (size_t s = 0; s < states.size(); ++s) index[states[s]] = s;
  Matrix departures(states.size(), std::vector<double>(states.size(), 0));
  std::vector<Decision> decisions;
  for (size_t s = 0; s < states.size(); ++s) {
    for (const int leaving : states[s]) {
      std::vector<int> left = states[s];
      std::erase(left, leaving);
      departures[s][index.at(left)] += 1;
    }
    for (size_t k = 0; k < demand.mix.size(); ++k) {
      Decision d{s, k, {}};
      for (size_t p = 0; p < yard.table.partitions.size(); ++p) {
        if (yard.table.partitions[p].modules.size() != demand.mix[k].size) continue;
        std::vector<int> more = states[s];
        more.push_back(static_cast<int>(p));
        std::sort(more.begin(), more.end());
        const auto found = index.find(more);
        if (found != index.end() && more != states[s]) d.options.push_back(found->second);
      }
      if (!d.options.empty()) decisions.push_back(std::move(d));
    }
  }
  std::vector<double> all;
  std::vector<size_t> chosen(decisions.size(), 0);
  for (;;) {
    all.push_back(AcceptanceOf(demand, measure, departures, decisions, chosen));
    size_t i = 0;
    while (i < chosen.size() && ++chosen[i] == decisions[i].options.size()) chosen[i++] = 0;
    if (i == chosen.size()) return all;
  }
}

}  // namespace switchyard::bench

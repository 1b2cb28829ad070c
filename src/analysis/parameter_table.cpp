#include "analysis/parameter_table.h"

#include <algorithm>
#include <numeric>

#include "analysis/fold.h"
#include "base/check.h"

namespace shardproof {

std::vector<ParameterRow> parameter_table(Module& model, const ResolvedPlan& plan,
                                          const std::vector<int64_t>& ranks,
                                          const ItemSizes& sizes) {
  std::vector<std::vector<ParameterState>> columns;
  for (const int64_t rank : ranks) columns.push_back(parameters_on(model, plan, rank, sizes));
  std::vector<ParameterRow> rows;
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < plan.parameters.size(); ++i) {
    const ParameterState& first = columns.at(0)[i];
    std::string key = fmt::format("{}|{}|{}", starred(first.name).pattern, first.shape,
                                  first.placement + plan.parameters[i].style);
    for (const auto& column : columns) key += fmt::format("|{}", column[i].local_shape);
    const auto [at, fresh] = index.try_emplace(key, rows.size());
    if (fresh) {
      rows.push_back({.names = {},
                      .name = {},
                      .shape = first.shape,
                      .placement = first.placement,
                      .style = plan.parameters[i].style,
                      .units = {},
                      .local = {}});
      for (const auto& column : columns) rows.back().local.push_back({column[i].local_shape});
    }
    ParameterRow& row = rows[at->second];
    row.names.push_back(first.name);
    row.units.push_back(first.unit);
    row.bytes += sizes.parameter * std::accumulate(first.shape.begin(), first.shape.end(),
                                                   int64_t{1}, std::multiplies<>());
    for (size_t c = 0; c < columns.size(); ++c) row.local[c].bytes += columns[c][i].bytes;
  }
  for (ParameterRow& row : rows) row.name = folded(row.names);
  return rows;
}

std::vector<int64_t> first_middle_last(const MeshShape& mesh) {
  std::vector<int64_t> middle;
  for (const MeshAxis& axis : mesh.axes()) middle.push_back(axis.size / 2);
  std::vector<int64_t> ranks = {0, mesh.rank(middle), mesh.world_size() - 1};
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace shardproof

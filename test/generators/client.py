"""What an integrator would write with the package that openapi-python-client generates. Prints its results as JSON."""

import json
import os
import time

from boltyard_client import AuthenticatedClient
from boltyard_client.api.gateway import create_payment, list_payments
from boltyard_client.api.nodes import create_node, get_node
from boltyard_client.models import (
    CreatedNode,
    CreatedPayment,
    CreateNodeParams,
    CreatePaymentParams,
    ErrorResponse,
    Node,
    NodeStatus,
    PaymentPage,
    Protocol,
)

client = AuthenticatedClient(base_url=os.environ["BASE_URL"], token=os.environ["API_KEY"], raise_on_unexpected_status=True)

created = create_node.sync(client=client, body=CreateNodeParams(name="Python"), idempotency_key="python")
assert isinstance(created, CreatedNode), created
node = created.node
while node.status == NodeStatus.PROVISIONING:
    time.sleep(0.2)
    node = get_node.sync(node.id, client=client)
    assert isinstance(node, Node), node

payment = create_payment.sync(
    client=client,
    body=CreatePaymentParams(node_id=node.id, amount_sat=21, description="One joke", protocol=Protocol.MPP),
)
assert isinstance(payment, CreatedPayment), payment
listed = list_payments.sync(client=client, limit=1)
assert isinstance(listed, PaymentPage), listed
missing = get_node.sync_detailed("node_missing", client=client)
assert isinstance(missing.parsed, ErrorResponse), missing

print(
    json.dumps(
        {
            "node": {"name": node.name, "status": node.status.value},
            "payment": {"protocol": payment.protocol.value, "status": payment.status, "challenge": payment.challenge},
            "listed": [{"isIt": one.id == payment.id, "amountSat": one.amount_sat} for one in listed.payments],
            "error": {
                "status": missing.status_code.value,
                "code": missing.parsed.error.code,
                "message": missing.parsed.error.message,
            },
        }
    )
)
